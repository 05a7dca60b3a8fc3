#pragma once

#include "plan/tiling.hpp"

#include <vector>

namespace maskwise {

struct level {
    std::int64_t extent;
    std::int64_t stride_bytes;
};

// The loops of a tile with one operand's strides, innermost first.
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
    // Appends, or merges with the last level if the two form one loop.
    void add(const level& next) {
        level* const last = count > 0 ? &(*this)[count - 1] : nullptr;
        if (last != nullptr && next.stride_bytes == last->extent * last->stride_bytes)
            last->extent *= next.extent;
        else
            append(next);
    }
};

// The number of elements of the levels [first, last).
inline std::int64_t product(const levels& loops, int first, int last) {
    std::int64_t result = 1;
    for (int i = first; i < last; ++i) result *= loops[i].extent;
    return result;
}
inline std::int64_t product(const levels& loops) {
    return product(loops, 0, loops.count);
}

// Byte offsets of the elements of the levels [first, last), innermost level fastest.
inline std::vector<std::int32_t> offsets_of(const levels& loops, int first, int last) {
    std::vector<std::int32_t> offsets(static_cast<std::size_t>(product(loops, first, last)));
    std::size_t filled = 1;
    offsets[0] = 0;
    for (int i = first; i < last; ++i) {
        const auto stride = static_cast<std::int32_t>(loops[i].stride_bytes);
        const std::size_t end = filled * static_cast<std::size_t>(loops[i].extent);
        for (std::size_t k = filled; k < end; ++k) offsets[k] = offsets[k - filled] + stride;
        filled = end;
    }
    return offsets;
}
inline std::vector<std::int32_t> offsets_of(const levels& loops) {
    return offsets_of(loops, 0, loops.count);
}

} // namespace maskwise
