#pragma once

#include "plan/levels.hpp"

namespace maskwise {

// A level with its place in the buffer: bytes from one of its elements to the next.
struct placed_level {
    level from;
    std::int64_t place_bytes;
};

// How the levels of an operand become items, groups and blocks of the transpose kernel.
struct transposition {
    int items = 0;                    // levels, from the innermost on
    std::vector<placed_level> groups; // levels along which the operand is contiguous
    std::vector<placed_level> blocks;
};

// The choice that fills the kernel's registers best; no groups where packing by blocks does not
// pay.
transposition choose_transposition(const levels& from, std::int64_t width);

std::int64_t product(const std::vector<placed_level>& of);

} // namespace maskwise
