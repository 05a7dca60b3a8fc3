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

// The choice that fills the kernel's registers best; no groups where packing by blocks does not
// pay.
transposition choose_transposition(const levels& from, std::int64_t width);

// How many items side by side in dst a block of registers may read at once: a power of two up to
// 32, so few that no set of L1 gets more of their lines than it has ways. Each line is read in
// several steps, and where rows are a power of two apart it would be gone before the next one.
std::int64_t items_at_once(std::span<const std::int32_t> offsets, const cache_facts& caches);

// Elements of the levels with these numbers.
std::int64_t product(const levels& from, std::span<const int> numbers);

} // namespace maskwise
