#pragma once

#include "plan/tiling.hpp"

#include <vector>

namespace maskwise {

struct level {
    std::int64_t extent;
    std::int64_t stride_bytes;
};

// Loops of a tile as one operand sees them, innermost first.
struct levels {
    int count = 0;
    std::array<level, max_rank> values{};

    level& operator[](int i) { return values[static_cast<std::size_t>(i)]; }
    const level& operator[](int i) const { return values[static_cast<std::size_t>(i)]; }
    auto begin() { return values.begin(); }
    auto end() { return values.begin() + count; }
    auto begin() const { return values.begin(); }
    auto end() const { return values.begin() + count; }

    void append(const level& next) { (*this)[count++] = next; }
    // Merged with its neighbour where the two are one loop.
    void add(const level& next) {
        level* const last = count > 0 ? &(*this)[count - 1] : nullptr;
        if (last != nullptr && next.stride_bytes == last->extent * last->stride_bytes)
            last->extent *= next.extent;
        else
            append(next);
    }
};

// Elements of the levels first .. last - 1.
std::int64_t product(const levels& from, int first, int last);
inline std::int64_t product(const levels& from) {
    return product(from, 0, from.count);
}

// Offsets in bytes of those elements, innermost fastest.
std::vector<std::int32_t> offsets_of(const levels& from, int first, int last);
inline std::vector<std::int32_t> offsets_of(const levels& from) {
    return offsets_of(from, 0, from.count);
}

} // namespace maskwise
