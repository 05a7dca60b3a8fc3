#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

namespace maskwise::test {

// One operand of the reference: extents and byte strides, outermost first. This file shares no code
// with Maskwise or oneDNN.
struct view {
    std::byte* data = nullptr;
    std::vector<std::int64_t> extents;
    std::vector<std::int64_t> strides_bytes;
};

// A row-major view. `data` is const for operands that are only read. Callers must not write through
// views of these operands.
view dense_view(const void* data, const std::vector<std::int64_t>& extents,
                std::int64_t width_bytes);

// Bytes from element {0, ..., 0} to the element at an index of the result. Shapes are aligned at
// the last dimension, and extents of 1 repeat.
std::int64_t offset_bytes(const view& operand, std::span<const std::int64_t> index);

// Advances the index, last dimension first. Returns false after the last index. No extent may be 0.
bool advance(std::vector<std::int64_t>& index, std::span<const std::int64_t> extents);

// Bytes from the lowest element to element {0,...,0}; not 0 if strides are negative.
std::int64_t bytes_below(const view& operand);

// Bytes from the first to one past the last byte of the view; 0 if the view is empty.
std::int64_t span_bytes(const view& operand, std::int64_t width_bytes);

using extent_list = std::vector<std::int64_t>;

std::int64_t count_of(std::span<const std::int64_t> extents); // elements

// Strides of an operand along the dimensions of the broadcast shape `target`: aligned right, and 0
// where the operand repeats.
extent_list broadcast_strides(const extent_list& extents, const extent_list& strides,
                              const extent_list& target);
inline std::int64_t inner_stride(const extent_list& strides) {
    return strides.empty() ? 0 : strides.back();
}

// Calls row(offsets, extent) for each innermost row of the shape. strides[k] are operand k's
// strides. Without dimensions, there is one row of one element.
template <std::size_t N, typename Row>
void walk_rows(const extent_list& extents, const std::array<extent_list, N>& strides, Row&& row) {
    if (count_of(extents) == 0) return;
    const std::span outer(extents.data(), extents.empty() ? 0 : extents.size() - 1);
    extent_list index(outer.size(), 0);
    do {
        std::array<std::int64_t, N> offsets{};
        for (std::size_t k = 0; k < N; ++k)
            for (std::size_t d = 0; d < index.size(); ++d) offsets[k] += strides[k][d] * index[d];
        row(offsets, extents.empty() ? 1 : extents.back());
    } while (advance(index, outer));
}

// Calls visit(offsets) for each element.
template <std::size_t N, typename Visit>
void walk(const extent_list& extents, const std::array<extent_list, N>& strides, Visit&& visit) {
    walk_rows<N>(extents, strides, [&](auto offsets, std::int64_t extent) {
        for (std::int64_t i = 0; i < extent; ++i) {
            visit(offsets);
            for (std::size_t k = 0; k < N; ++k) offsets[k] += inner_stride(strides[k]);
        }
    });
}

// The common broadcast shape. Shapes are aligned at the last dimension. nullopt if a dimension has
// two different extents other than 1.
std::optional<extent_list> broadcast(std::initializer_list<extent_list> shapes);

// The shape of dst, or nullopt if operands do not broadcast. `cond_expands`: cond may be larger
// than the broadcast sources.
std::optional<extent_list> select_shape(const extent_list& cond, const extent_list& src_0,
                                        const extent_list& src_1, bool cond_expands);

// dst = cond ? src_0 : src_1, element by element by memmove. Any non-zero cond byte is true.
void select_reference(const view& cond, const view& src_0, const view& src_1, const view& dst,
                      std::int64_t width_bytes);

} // namespace maskwise::test
