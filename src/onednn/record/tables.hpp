#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace maskwise::onednn {

// Held while any table inserts or erases a handle, and around a fork.
extern std::mutex table_writes;

// Records of real handles, looked up without a lock. The plugin erases an entry before it forwards
// the handle's destruction, because oneDNN reuses addresses.
//
// A bucket is a list of nodes. Nodes are never freed, so a reader that walks a changing bucket sees
// only valid nodes. An empty node is reused for another handle of its bucket, so the peak number of
// live handles bounds the memory. A reader dereferences a record only if the node has the reader's
// handle. The record lives until a call destroys the handle or compiles it again. As with oneDNN
// alone, no other thread may use the handle during this call.
template <typename Record>
class handle_map {
public:
    // Returns the record of `handle`, or null. Any thread may call this function, which takes no
    // lock. A null handle marks an empty node. insert stores a node's record before its handle.
    Record* find(const void* handle) {
        node* const entry = handle != nullptr ? node_with(handle, bucket_of(handle)) : nullptr;
        return entry != nullptr ? entry->record.load(std::memory_order_relaxed) : nullptr;
    }

    // Stores `record` for `handle` and frees an earlier record. If this throws std::bad_alloc, the
    // map is unchanged.
    void insert(const void* handle, std::unique_ptr<Record> record) {
        std::unique_ptr<Record> replaced; // freed after the lock is released
        const std::lock_guard lock(table_writes);
        node& entry = node_for(handle);
        replaced.reset(entry.record.exchange(record.release()));
        entry.handle.store(handle, std::memory_order_release);
    }

    void erase(const void* handle) {
        std::unique_ptr<Record> erased; // freed after the lock is released
        const std::lock_guard lock(table_writes);
        node* const entry = node_with(handle, bucket_of(handle));
        if (entry == nullptr) return;
        entry->handle.store(nullptr, std::memory_order_release);
        erased.reset(entry->record.exchange(nullptr));
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

    // Returns the bucket's first node with `handle`, or null. A null `handle` finds an empty node.
    static node* node_with(const void* handle, node& bucket) {
        node* entry = &bucket;
        while (entry != nullptr && entry->handle.load(std::memory_order_acquire) != handle)
            entry = entry->next.load(std::memory_order_acquire);
        return entry;
    }

    // Returns the handle's node, else an empty or new node of its bucket.
    node& node_for(const void* handle) {
        node& bucket = bucket_of(handle);
        for (const void* const key : {handle, static_cast<const void*>(nullptr)})
            if (node* const entry = node_with(key, bucket)) return *entry;
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

// Callers of insert or erase must include the record's header.
struct side_tables {
    handle_map<std::shared_ptr<op_record>> ops; // as the client last changed them
    handle_map<graph_record> graphs;
    handle_map<partition_claim> claims; // by partition
    handle_map<tensor_record> tensors;
    handle_map<executable> compiled; // by compiled partition
};

// Never destroyed, because the client's exit handlers may still destroy handles.
side_tables& tables();

} // namespace maskwise::onednn
