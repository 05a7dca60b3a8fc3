#pragma once

#include "attention/cached_maps.hpp"
#include "attention/division.hpp"
#include "attention/tile_operands.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace maskwise {

// Fills a mask's map. share_out(layout, count, work) calls work(i) for i in [0, count) on any
// threads.
template <class ShareOut>
void fill_map(const mask_layout& layout, const attention_kernels& kernels, const void* mask,
              const map_memory& map, int workers, const ShareOut& share_out) {
    const std::int64_t row_tiles = layout.heads * layout.row_tiles;
    const std::int64_t parts = parts_of_map(layout, workers);
    share_out(layout, row_tiles * parts, [&](std::int64_t item) {
        const std::int64_t number = item / parts, index = number * layout.key_tiles;
        map_row_tile(layout, kernels, mask, number, map.tiles + index,
                     map.highest == nullptr ? nullptr : map.highest + index, {item % parts, parts});
    });
}

// Returns the mask's cached map. If there is none, fills and returns a new cached map, or `scratch`
// if the cache is null or full.
template <class ShareOut>
map_memory find_map(const mask_layout& layout, const attention_kernels& kernels,
                    const mask_maps* maps, const void* mask, const map_memory& scratch, int workers,
                    const ShareOut& share_out) {
    if (layout.heads == 0) return {};
    cached_maps* const cache = maps == nullptr ? nullptr : &maps->data();
    if (cache != nullptr)
        if (cached_map* const cached = cache->find(mask, layout)) return cached->memory();
    if (cache == nullptr || cache->is_full()) {
        fill_map(layout, kernels, mask, scratch, workers, share_out);
        return scratch;
    }
    auto map = std::make_unique<cached_map>(mask, layout);
    fill_map(layout, kernels, mask, map->memory(), workers, share_out);
    return cache->add(std::move(map))->memory();
}

// Scratch memory for the maps of a plan.
struct maps_memory {
    float* highest;   // of each tile of the bias
    float* key_norms; // of each key tile of each head
    tile_mask* tiles; // of the cond, then of the bias
};

// Returns the maps of cond and bias. Key norms are computed on demand.
template <class ShareOut>
tile_maps find_maps(const tile_plan& plan, const attention_operands& addresses,
                    const maps_memory& memory, int workers, const ShareOut& share_out) {
    const auto find = [&](const mask_layout& layout, const void* mask, const map_memory& scratch) {
        return find_map(layout, plan.kernels->attention, addresses.maps, mask, scratch, workers,
                        share_out);
    };
    tile_maps maps;
    maps.cond = find(plan.mask, addresses.cond, {memory.tiles, nullptr}).tiles;
    const map_memory bias =
        find(plan.bias_mask, addresses.bias, {memory.tiles + plan.mask.tiles(), memory.highest});
    maps.bias = bias.tiles;
    maps.highest_bias = bias.highest;
    const bool has_bias = plan.bias.column_count != 0 || has_slopes(addresses.rules);
    if (!plan.can_bound_scores || !has_bias) return maps;
    std::fill_n(memory.key_norms, plan.heads * plan.key_tiles(), unknown_norm);
    maps.key_norms = memory.key_norms;
    return maps;
}

} // namespace maskwise
