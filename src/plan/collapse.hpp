#pragma once

#include "tensor/broadcast.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

namespace maskwise {

inline constexpr auto loop_numbers = [] {
    std::array<int, max_rank> numbers{};
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}();

template <std::size_t Operands>
struct basic_loop {
    std::int64_t extent = 1;
    std::array<std::int64_t, Operands> stride_bytes{};
};

// An element-wise operation as nested loops over dst's elements, innermost first. No loop has
// extent 1. dst's strides are positive and ascending. Adjacent loops are merged if one loop can
// replace both. dst is the last operand. Strides of inputs may be negative.
template <std::size_t Operands>
struct basic_loop_nest {
    int rank = 0;
    std::array<basic_loop<Operands>, max_rank> loops{};
    std::array<std::int64_t, Operands> width_bytes{};
    // Bytes from the operand's element {0, ..., 0} to where the loops begin; 0 unless dst has
    // negative strides.
    std::array<std::int64_t, Operands> first_bytes{};
    std::int64_t elements = 0; // of dst; if 0, the rank is also 0

    const basic_loop<Operands>& operator[](int i) const {
        return loops[static_cast<std::size_t>(i)];
    }
    basic_loop<Operands>& operator[](int i) { return loops[static_cast<std::size_t>(i)]; }

    auto begin() const { return loops.begin(); }
    auto end() const { return loops.begin() + rank; }
    auto begin() { return loops.begin(); }
    auto end() { return loops.begin() + rank; }
    // 0 ... rank - 1.
    std::span<const int> numbers() const {
        return std::span(loop_numbers).first(static_cast<std::size_t>(rank));
    }
};

// A missing operand is null and has stride 0.
template <std::size_t Operands>
using operand_descs = std::array<const tensor_desc*, Operands>;

namespace collapsing {

// Adds a loop for each dimension of dst that is longer than 1, outermost first. Broadcast operands
// get stride 0.
template <std::size_t Operands>
void align_operands(basic_loop_nest<Operands>& nest, const operand_descs<Operands>& operands) {
    const dims& extents = operands.back()->extents;
    for (int d = 0; d < extents.rank(); ++d) {
        if (extents[d] == 1) continue;
        basic_loop<Operands>& loop = nest[nest.rank++];
        loop.extent = extents[d];
        for (std::size_t o = 0; o < Operands; ++o)
            if (operands[o] != nullptr)
                loop.stride_bytes[o] = aligned_stride(*operands[o], d, extents.rank());
    }
}

// Reverses loops that walk dst backwards, so that dst's strides are positive.
template <std::size_t Operands>
void reverse_backward_loops(basic_loop_nest<Operands>& nest) {
    for (basic_loop<Operands>& loop : nest) {
        if (loop.stride_bytes.back() >= 0) continue;
        for (std::size_t o = 0; o < Operands; ++o) {
            nest.first_bytes[o] += (loop.extent - 1) * loop.stride_bytes[o];
            loop.stride_bytes[o] = -loop.stride_bytes[o];
        }
    }
}

template <std::size_t Operands>
void merge_neighbours(basic_loop_nest<Operands>& nest) {
    const auto is_one_loop = [](const auto& inner, const auto& outer) {
        for (std::size_t o = 0; o < Operands; ++o)
            if (outer.stride_bytes[o] != inner.extent * inner.stride_bytes[o]) return false;
        return true;
    };
    int last = 0;
    for (int d = 1; d < nest.rank; ++d) {
        if (is_one_loop(nest[last], nest[d]))
            nest[last].extent *= nest[d].extent;
        else
            nest[++last] = nest[d];
    }
    if (nest.rank > 0) nest.rank = last + 1;
}

} // namespace collapsing

// Whether elements of dst may overlap: false only if each loop's stride is at least the span of its
// inner loops. Interleaved dimensions count as overlapping, because only a search could rule out an
// overlap. Requires a nest whose loops are not yet merged.
template <std::size_t Operands>
bool dst_overlaps(const basic_loop_nest<Operands>& nest) {
    std::int64_t span = nest.width_bytes.back();
    for (const basic_loop<Operands>& loop : nest) {
        if (loop.stride_bytes.back() < span) return true;
        span += (loop.extent - 1) * loop.stride_bytes.back();
    }
    return false;
}

// Upper bound on the operand's distinct bytes in memory; exact unless elements overlap.
template <std::size_t Operands>
std::int64_t distinct_bytes(const basic_loop_nest<Operands>& nest, std::size_t operand) {
    std::int64_t bytes = nest.width_bytes[operand];
    for (const basic_loop<Operands>& loop : nest)
        if (loop.stride_bytes[operand] != 0) bytes *= loop.extent;
    return bytes;
}

// Returns the loop nest. Operands must broadcast one-way to dst, and byte counts must fit int64.
// Calls overlaps() if dst_overlaps.
template <std::size_t Operands, class Overlaps>
basic_loop_nest<Operands> collapse(const operand_descs<Operands>& operands,
                                   const Overlaps& overlaps) {
    basic_loop_nest<Operands> nest;
    nest.elements = element_count(operands.back()->extents);
    if (nest.elements != 0) collapsing::align_operands(nest, operands);
    for (std::size_t o = 0; o < Operands; ++o)
        if (operands[o] != nullptr)
            nest.width_bytes[o] = static_cast<std::int64_t>(width_bytes(operands[o]->type));
    collapsing::reverse_backward_loops(nest);
    std::ranges::sort(nest, {}, [](const auto& loop) { return loop.stride_bytes.back(); });
    if (dst_overlaps(nest)) overlaps();
    collapsing::merge_neighbours(nest);
    return nest;
}

// Whether elements of `written` may overlap (see dst_overlaps). Threads that write different
// elements may then write the same bytes.
inline bool elements_overlap(const tensor_desc& written) {
    bool overlap = false;
    collapse<1>({&written}, [&] { overlap = true; });
    return overlap;
}

// Throws argument_error if elements of an output may overlap (see dst_overlaps). `name` is the
// output's name.
inline void require_apart(const tensor_desc& written, const std::string& name) {
    if (elements_overlap(written))
        throw argument_error(name + " (" + to_string(written) + ") may have elements that overlap");
}

} // namespace maskwise
