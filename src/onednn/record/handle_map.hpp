#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace maskwise::onednn {

// Records of real handles, found without a lock. An entry is removed before the handle's
// destruction is forwarded, since addresses are reused.
//
// Buckets are lists of nodes that are only ever appended to; a node is emptied and filled again for
// another handle of the same bucket, never freed. So a reader that walks a bucket while handles
// come and go sees valid nodes throughout, and it dereferences a record only when the key is its
// own handle. That record lives as long as the handle keeps its meaning: a client that uses a
// handle while another thread destroys or compiles the same one is wrong with oneDNN alone, too.
// Memory is bounded by the most handles that were ever alive at once.
template <typename Record>
class handle_map {
public:
    // The record of `handle` or null. Any thread, no lock. Null is not a handle: it marks empty
    // nodes, whatever record they still hold.
    Record* find(const void* handle) const {
        if (handle == nullptr) return nullptr;
        for (const node* n = &bucket_of(handle); n != nullptr;
             n = n->next.load(std::memory_order_acquire))
            if (n->handle.load(std::memory_order_acquire) == handle)
                return n->record.load(std::memory_order_relaxed);
        return nullptr;
    }

    // Keeps `record` for `handle` in place of an earlier one. Throws std::bad_alloc and then
    // changes nothing.
    void insert(const void* handle, std::unique_ptr<Record> record) {
        std::unique_ptr<Record> replaced; // freed after the lock is let go
        const std::lock_guard lock(mutex_);
        node& place = place_for(handle);
        if (place.handle.load(std::memory_order_relaxed) == handle)
            replaced.reset(place.record.load(std::memory_order_relaxed));
        place.record.store(record.release(), std::memory_order_relaxed);
        place.handle.store(handle, std::memory_order_release);
    }

    // Forgets `handle`, if it is known.
    void erase(const void* handle) {
        if (handle == nullptr) return;
        std::unique_ptr<Record> erased;
        const std::lock_guard lock(mutex_);
        for (node* n = &bucket_of(handle); n != nullptr; n = n->next.load())
            if (n->handle.load(std::memory_order_relaxed) == handle) {
                n->handle.store(nullptr, std::memory_order_release);
                erased.reset(n->record.load(std::memory_order_relaxed));
                return;
            }
    }

    // No handle comes or goes meanwhile: around a fork.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

private:
    struct node {
        std::atomic<const void*> handle = nullptr;
        std::atomic<Record*> record = nullptr;
        std::atomic<node*> next = nullptr;
    };

    static std::size_t index_of(const void* handle) {
        // Fibonacci hashing: heap addresses agree in their low and their high bits.
        const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
        return static_cast<std::size_t>((bits * 0x9E3779B97F4A7C15U) >> 54);
    }

    const node& bucket_of(const void* handle) const { return buckets_[index_of(handle)]; }
    node& bucket_of(const void* handle) { return buckets_[index_of(handle)]; }

    // The handle's own node, else an empty one of its bucket, else a new one at the end.
    node& place_for(const void* handle) {
        node* empty = nullptr;
        node* last = nullptr;
        for (node* n = &bucket_of(handle); n != nullptr; n = n->next.load()) {
            const void* held = n->handle.load(std::memory_order_relaxed);
            if (held == handle) return *n;
            if (held == nullptr && empty == nullptr) empty = n;
            last = n;
        }
        if (empty != nullptr) return *empty;
        auto* added = new node;
        last->next.store(added, std::memory_order_release);
        return *added;
    }

    std::array<node, 1024> buckets_{};
    std::mutex mutex_;
};

} // namespace maskwise::onednn
