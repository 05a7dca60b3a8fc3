#pragma once

#include "base/cache.hpp"
#include "plan/levels.hpp"

#include <span>

namespace maskwise {

// How the levels of an operand become items, groups and blocks of the transpose kernel.
struct transposition {
    int items = 0; // levels, from the innermost on
    // Numbers of levels. Along groups the operand is contiguous.
    std::vector<int> groups, blocks;
};

// The choice that fills the kernel's registers best; without groups if packing by blocks does not
// pay.
transposition choose_transposition(const levels& loops, std::int64_t width);

// How many items, adjacent in dst, a block of registers reads at once: a power of two up to 32.
// Each line is read in several steps. If rows are a power of two apart, their lines fall into one
// set of L1, so there must be no more items than that set has ways.
std::int64_t items_at_once(std::span<const std::int32_t> offsets, const cache_facts& caches);

// Elements of the levels with these numbers.
std::int64_t product(const levels& loops, std::span<const int> numbers);

} // namespace maskwise
