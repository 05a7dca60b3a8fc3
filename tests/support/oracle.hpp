#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace maskwise::test {

// One operand of the reference: extents and byte strides, outermost first. Shares nothing with the
// library on purpose.
struct view {
    std::byte* data = nullptr;
    std::vector<std::int64_t> extents;
    std::vector<std::int64_t> strides_bytes;
};

// Bytes from element {0,...,0} down to the lowest one: not 0 where strides are negative.
std::int64_t bytes_below(const view& operand);

// Bytes from the first to one past the last byte that the view can touch; 0 where it is empty.
std::int64_t span_bytes(const view& operand, std::int64_t width_bytes);

// dst = cond ? src_0 : src_1, element by element by memcpy, inputs aligned to dst at the last
// dimension and repeated where their extent is 1. Any non-zero cond byte is true.
void select_reference(const view& cond, const view& src_0, const view& src_1, const view& dst,
                      std::int64_t width_bytes);

} // namespace maskwise::test
