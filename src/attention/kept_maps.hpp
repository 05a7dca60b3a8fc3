#pragma once

#include "attention/mask_map.hpp"
#include "maskwise/attention.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace maskwise {

// What map_row_tile fills in.
struct map_memory {
    tile_mask* tiles = nullptr;
    float* highest = nullptr; // of a bias
};

// The map of one mask.
struct kept_map {
    kept_map(const void* of, const mask_layout& how);

    map_memory memory() { return {tiles.data(), highest.data()}; }

    const void* mask;
    mask_layout layout;
    std::vector<tile_mask> tiles;
    std::vector<float> highest; // of a bias
    std::unique_ptr<kept_map> next;
};

// The maps that a mask_maps keeps. Any number of threads may use it at once.
struct mask_maps_data {
    ~mask_maps_data() { std::unique_ptr<kept_map> all(first.load()); }

    // Null where there is none yet.
    kept_map* find(const void* mask, const mask_layout& layout) const;
    // Does not look whether there is one.
    kept_map* keep(std::unique_ptr<kept_map> made);
    // More layouts than any model has: others are not kept.
    bool is_full() const { return count.load(std::memory_order_relaxed) >= 16; }

    std::atomic<kept_map*> first = nullptr;
    std::atomic<int> count = 0;
};

} // namespace maskwise
