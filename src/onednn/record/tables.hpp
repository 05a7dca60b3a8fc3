#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace maskwise::onednn {

// Held while a handle comes or goes in any table, and around a fork.
extern std::mutex table_writes;

// Records of real handles, found without a lock. An entry is removed before the handle's
// destruction is forwarded, since addresses are reused.
//
// Buckets are lists of nodes that are only ever added to; a node is emptied and filled again for
// another handle of the same bucket, never freed. So a reader that walks a bucket while handles
// come and go sees valid nodes throughout, and it dereferences a record only when the key is its
// own handle. That record lives as long as the handle keeps its meaning: a client that uses a
// handle while another thread destroys or compiles the same one is wrong with oneDNN alone, too.
// Memory is bounded by the most handles that were ever alive at once.
template <typename Record>
class handle_map {
public:
    // The record of `handle` or null. Any thread, no lock. Null is not a handle: it marks empty
    // nodes, and one that is just being filled has a record.
    Record* find(const void* handle) {
        node* const held = handle != nullptr ? node_with(handle, bucket_of(handle)) : nullptr;
        return held != nullptr ? held->record.load(std::memory_order_relaxed) : nullptr;
    }

    // Keeps `record` for `handle` in place of an earlier one. Throws std::bad_alloc and then
    // changes nothing.
    void insert(const void* handle, std::unique_ptr<Record> record) {
        std::unique_ptr<Record> replaced; // freed after the lock is let go
        const std::lock_guard lock(table_writes);
        node& place = place_for(handle);
        replaced.reset(place.record.exchange(record.release()));
        place.handle.store(handle, std::memory_order_release);
    }

    // Forgets `handle`, if it is known.
    void erase(const void* handle) {
        std::unique_ptr<Record> erased; // freed after the lock is let go
        const std::lock_guard lock(table_writes);
        node* const held = node_with(handle, bucket_of(handle));
        if (held == nullptr) return;
        held->handle.store(nullptr, std::memory_order_release);
        erased.reset(held->record.exchange(nullptr));
    }

private:
    struct node {
        std::atomic<const void*> handle = nullptr;
        std::atomic<Record*> record = nullptr;
        std::atomic<node*> next = nullptr;
    };

    node& bucket_of(const void* handle) {
        // Fibonacci hashing: heap addresses agree in their low and their high bits.
        const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
        return buckets_[(bits * 0x9E3779B97F4A7C15U) >> 54];
    }

    // The node of the bucket that holds `handle`, or for null an empty one; null where none is.
    static node* node_with(const void* handle, node& bucket) {
        node* at = &bucket;
        while (at != nullptr && at->handle.load(std::memory_order_acquire) != handle)
            at = at->next.load(std::memory_order_acquire);
        return at;
    }

    // The handle's own node, else an empty one of its bucket, else a new one.
    node& place_for(const void* handle) {
        node& bucket = bucket_of(handle);
        for (const void* const held : {handle, static_cast<const void*>(nullptr)})
            if (node* const found = node_with(held, bucket)) return *found;
        auto* const added = new node;
        added->next = bucket.next.load();
        bucket.next = added;
        return *added;
    }

    std::array<node, 1024> buckets_{};
};

class op_record;
struct graph_record;
struct partition_claim;
struct tensor_record;
class executable;

// A file that inserts or erases includes the record's own header.
struct side_tables {
    handle_map<std::shared_ptr<op_record>> ops; // as they are now
    handle_map<graph_record> graphs;
    handle_map<partition_claim> claims; // by partition
    handle_map<tensor_record> tensors;
    handle_map<executable> compiled; // by compiled partition
};

// Never destroyed: exit handlers of the client still destroy handles.
side_tables& tables();

} // namespace maskwise::onednn
