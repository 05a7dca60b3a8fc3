#pragma once

#include "maskwise/maskwise.hpp"

namespace maskwise {

// The index in each dimension of row-major element `number` of a shape. Never allocates.
class shape_position {
public:
    shape_position() noexcept {}
    shape_position(std::int64_t number, const dims& extents) : rank_(extents.rank()) {
        for (int d = rank_ - 1; d >= 0; --d) {
            (*this)[d] = number % extents[d];
            number /= extents[d];
        }
    }

    int rank() const { return rank_; }
    std::int64_t& operator[](int d) { return numbers_[static_cast<std::size_t>(d)]; }
    std::int64_t operator[](int d) const { return numbers_[static_cast<std::size_t>(d)]; }
    const std::int64_t* begin() const { return numbers_.data(); }
    const std::int64_t* end() const { return begin() + rank_; }

private:
    int rank_ = 0;
    std::array<std::int64_t, max_rank> numbers_; // only the first rank_ have a value
};

// The offset, in the unit of `strides`, from element {0, ..., 0} to the element at `position`.
inline std::int64_t offset_of(std::span<const std::int64_t> position, const dims& strides) {
    std::int64_t offset = 0;
    for (int d = 0; const std::int64_t number : position) offset += number * strides[d++];
    return offset;
}

} // namespace maskwise
