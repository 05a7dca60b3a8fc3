#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

namespace maskwise::test {

// One operand of the reference: extents and byte strides, outermost first. Shares nothing with the
// library on purpose.
struct view {
    std::byte* data = nullptr;
    std::vector<std::int64_t> extents;
    std::vector<std::int64_t> strides_bytes;
};

// Row-major. Inputs are not written.
view dense_view(const void* data, const std::vector<std::int64_t>& extents,
                std::int64_t width_bytes);

// Bytes from element {0,...,0} to the one that a result's index reads: aligned at the last
// dimension, repeated where the extent is 1.
std::int64_t offset_bytes(const view& operand, std::span<const std::int64_t> index);

// To the next index, the last dimension first; false behind the last one. No extent is 0.
bool advance(std::vector<std::int64_t>& index, std::span<const std::int64_t> extents);

// Bytes from element {0,...,0} down to the lowest one: not 0 where strides are negative.
std::int64_t bytes_below(const view& operand);

// Bytes from the first to one past the last byte that the view can touch; 0 where it is empty.
std::int64_t span_bytes(const view& operand, std::int64_t width_bytes);

using extent_list = std::vector<std::int64_t>;

// What all of them broadcast to: in each dimension, counted from the last, the one extent other
// than 1 that occurs; nullopt where two occur.
std::optional<extent_list> broadcast(std::initializer_list<extent_list> shapes);

// The shape of dst where operands broadcast; nullopt where they do not fit. `cond_expands`: cond
// may be larger than what the sources broadcast to.
std::optional<extent_list> select_shape(const extent_list& cond, const extent_list& src_0,
                                        const extent_list& src_1, bool cond_expands);

// dst = cond ? src_0 : src_1, element by element by memmove. Any non-zero cond byte is true.
void select_reference(const view& cond, const view& src_0, const view& src_1, const view& dst,
                      std::int64_t width_bytes);

} // namespace maskwise::test
