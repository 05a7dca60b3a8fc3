#include "plan/loop_nest.hpp"

#include "base/error.hpp"
#include "tensor/broadcast.hpp"

#include <algorithm>

namespace maskwise {
namespace {

constexpr per_operand<const char*> operand_names{"cond", "src_0", "src_1", "dst"};

per_operand<const tensor_desc*> operands_of(const select_desc& desc) {
    return {&desc.cond, &desc.src_0, &desc.src_1, &desc.dst};
}

std::string describe(std::size_t which, const tensor_desc& tensor) {
    return std::string(operand_names[which]) + " (" + std::string(to_string(tensor.type)) + ' ' +
           to_string(tensor.extents) + ", strides in bytes " + to_string(tensor.strides_bytes) +
           ')';
}

void check_operand(std::size_t which, const tensor_desc& tensor, const tensor_desc& dst) {
    if (tensor.extents.rank() != tensor.strides_bytes.rank())
        throw invalid_argument(describe(which, tensor) + " has not one stride per extent");
    const std::size_t expected = which == op_cond ? 1 : width_bytes(dst.type);
    if (expected == 0 || width_bytes(tensor.type) != expected)
        throw invalid_argument(
            describe(which, tensor) + " has elements of " +
            std::to_string(width_bytes(tensor.type)) + " bytes, expected " +
            (expected == 0 ? "1, 2, 4, 8, 16 or a string" : std::to_string(expected)));
    span_bytes(tensor); // throws on overflow
    require_one_way(tensor.extents, dst.extents, operand_names[which]);
}

// Dimensions of dst that are longer than 1, outermost first, with each input's stride or 0.
loop_nest align_operands(const select_desc& desc) {
    loop_nest nest;
    const auto operands = operands_of(desc);
    const int rank = desc.dst.extents.rank();
    for (int d = 0; d < rank; ++d) {
        if (desc.dst.extents[d] == 1) continue;
        loop_dim loop{desc.dst.extents[d], {}};
        for (std::size_t o = 0; o < operands.size(); ++o) {
            const int own = d - (rank - operands[o]->extents.rank());
            const bool moves = own >= 0 && operands[o]->extents[own] != 1;
            loop.stride_bytes[o] = moves ? operands[o]->strides_bytes[own] : 0;
        }
        nest[nest.rank++] = loop;
    }
    return nest;
}

// A loop that walks dst backwards is walked from its other end, so that dst's strides are positive.
void turn_forward(loop_nest& nest) {
    for (int d = 0; d < nest.rank; ++d) {
        if (nest[d].stride_bytes[op_dst] >= 0) continue;
        for (std::size_t o = 0; o < operand_count; ++o) {
            std::int64_t& stride = nest[d].stride_bytes[o];
            nest.first_bytes[o] += (nest[d].extent - 1) * stride;
            stride = -stride;
        }
    }
}

void sort_by_dst_stride(loop_nest& nest) {
    std::sort(nest.loops.begin(), nest.loops.begin() + nest.rank,
              [](const loop_dim& a, const loop_dim& b) {
                  return a.stride_bytes[op_dst] < b.stride_bytes[op_dst];
              });
}

// Each stride of dst must reach over everything inside it. Layouts that interleave dimensions
// without overlap fail this, too: telling them apart is a search, and nobody makes them.
void check_no_overlap(const loop_nest& nest, const tensor_desc& dst) {
    std::int64_t span = nest.width_bytes[op_dst];
    for (int d = 0; d < nest.rank; ++d) {
        if (nest[d].stride_bytes[op_dst] < span)
            throw invalid_argument(describe(op_dst, dst) + " has elements that overlap");
        span += (nest[d].extent - 1) * nest[d].stride_bytes[op_dst];
    }
}

bool is_one_loop(const loop_dim& inner, const loop_dim& outer) {
    for (std::size_t o = 0; o < operand_count; ++o)
        if (outer.stride_bytes[o] != inner.extent * inner.stride_bytes[o]) return false;
    return true;
}

void merge_neighbours(loop_nest& nest) {
    int kept = 0;
    for (int d = 1; d < nest.rank; ++d) {
        if (is_one_loop(nest[kept], nest[d]))
            nest[kept].extent *= nest[d].extent;
        else
            nest[++kept] = nest[d];
    }
    if (nest.rank > 0) nest.rank = kept + 1;
}

} // namespace

loop_nest make_loop_nest(const select_desc& desc) {
    const auto operands = operands_of(desc);
    for (std::size_t o = 0; o < operand_count; ++o) check_operand(o, *operands[o], desc.dst);
    loop_nest nest;
    const std::int64_t elements = element_count(desc.dst.extents);
    if (elements != 0) nest = align_operands(desc);
    nest.elements = elements;
    for (std::size_t o = 0; o < operand_count; ++o)
        nest.width_bytes[o] = static_cast<std::int64_t>(width_bytes(operands[o]->type));
    turn_forward(nest);
    sort_by_dst_stride(nest);
    check_no_overlap(nest, desc.dst);
    merge_neighbours(nest);
    return nest;
}

} // namespace maskwise
