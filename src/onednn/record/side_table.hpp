#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace maskwise::onednn {

// Records of real handles: claims by partition, and tensors.
// Entries are removed before the handle's destruction is forwarded, since addresses are reused.
// Any thread; no lock is held while the real library runs.
template <typename Record>
class side_table {
public:
    std::shared_ptr<Record> find(const void* handle) const {
        const shard& s = shard_of(handle);
        const std::lock_guard lock(s.mutex);
        const auto found = s.records.find(handle);
        return found == s.records.end() ? nullptr : found->second;
    }

    // Throws std::bad_alloc and then holds nothing for `handle`.
    void insert(const void* handle, std::shared_ptr<Record> record) {
        shard& s = shard_of(handle);
        const std::lock_guard lock(s.mutex);
        s.records.insert_or_assign(handle, std::move(record));
    }

    void erase(const void* handle) {
        std::shared_ptr<Record> released; // destroyed after the lock is let go
        shard& s = shard_of(handle);
        const std::lock_guard lock(s.mutex);
        const auto found = s.records.find(handle);
        if (found == s.records.end()) return;
        released = std::move(found->second);
        s.records.erase(found);
    }

    // The whole table, around a fork.
    void lock() {
        for (shard& s : shards_) s.mutex.lock();
    }
    void unlock() {
        for (shard& s : shards_) s.mutex.unlock();
    }

private:
    struct shard {
        mutable std::mutex mutex;
        std::unordered_map<const void*, std::shared_ptr<Record>> records;
    };

    static std::size_t index_of(const void* handle) {
        return (reinterpret_cast<std::uintptr_t>(handle) >> 6) % 16;
    }
    const shard& shard_of(const void* handle) const { return shards_[index_of(handle)]; }
    shard& shard_of(const void* handle) { return shards_[index_of(handle)]; }

    std::array<shard, 16> shards_;
};

} // namespace maskwise::onednn
