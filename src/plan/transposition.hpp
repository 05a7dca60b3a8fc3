#pragma once

#include "base/cache.hpp"
#include "plan/levels.hpp"

#include <span>

namespace maskwise {

// How the levels of an operand become items, groups and blocks of the transpose kernel.
struct transposition {
    int items = 0; // the number of innermost levels
    // Indexes of levels. The operand is contiguous along `groups`.
    std::vector<int> groups, blocks;
};

// Returns the transposition that fills the kernel's registers best. `groups` is empty if packing by
// blocks would not be faster.
transposition choose_transposition(const levels& loops, std::int64_t width);

// How many items, adjacent in the buffer, a block of registers reads at once: a power of two from 4
// to max_block_items. Each item's cache line is read in several steps and should stay in L1. Fewer
// items are read at once if more of the items' lines map to one L1 set than the set has ways.
std::int64_t items_at_once(std::span<const std::int32_t> offsets, const cache_facts& caches);

std::int64_t product(const levels& loops, std::span<const int> numbers);

} // namespace maskwise
