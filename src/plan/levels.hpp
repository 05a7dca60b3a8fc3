#pragma once

#include "plan/tiling.hpp"

#include <vector>

namespace maskwise {

struct level {
    std::int64_t extent;
    std::int64_t stride_bytes;
};

// Loops of a tile as one operand sees them, innermost first, its own neighbours merged.
struct levels {
    int count = 0;
    std::array<level, max_rank> values{};

    level& operator[](int i) { return values[static_cast<std::size_t>(i)]; }
    const level& operator[](int i) const { return values[static_cast<std::size_t>(i)]; }
    auto begin() { return values.begin(); }
    auto end() { return values.begin() + count; }
    auto begin() const { return values.begin(); }
    auto end() const { return values.begin() + count; }

    void add(level next) {
        if (count > 0) {
            level& last = values[static_cast<std::size_t>(count - 1)];
            if (next.stride_bytes == last.extent * last.stride_bytes) {
                last.extent *= next.extent;
                return;
            }
        }
        values[static_cast<std::size_t>(count++)] = next;
    }
};

// Elements of the levels first .. last - 1.
std::int64_t product(const levels& from, int first, int last);

// Offsets in bytes of those elements, innermost fastest.
std::vector<std::int32_t> offsets_of(const levels& from, int first, int last);

} // namespace maskwise
