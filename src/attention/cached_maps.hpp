#pragma once

#include "attention/mask_map.hpp"
#include "maskwise/attention.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace maskwise {

// The arrays that map_row_tile writes.
struct map_memory {
    tile_mask* tiles = nullptr;
    float* highest = nullptr; // null for a cond
};

// One mask's map: a tile_mask per tile.
struct cached_map {
    cached_map(const void* address, const mask_layout& form);

    map_memory memory() { return {tiles.data(), highest.data()}; }

    const void* mask;
    mask_layout layout;
    std::vector<tile_mask> tiles;
    std::vector<float> highest; // empty for a cond
    std::unique_ptr<cached_map> next;
};

// The cache of a mask_maps. Thread-safe.
struct cached_maps {
    ~cached_maps() { std::unique_ptr<cached_map> all(first.load()); }

    // Returns null if the map is not cached.
    cached_map* find(const void* mask, const mask_layout& layout) const;
    // Adds the map even if an equal map is cached.
    cached_map* add(std::unique_ptr<cached_map> map);
    // Callers add no map to a full cache.
    bool is_full() const { return count.load(std::memory_order_relaxed) >= 16; }

    std::atomic<cached_map*> first = nullptr;
    std::atomic<int> count = 0;
};

} // namespace maskwise
