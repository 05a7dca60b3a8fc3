#pragma once

#include "plan/select_plan.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace maskwise {

// Operands are numbered in the order of select_desc.
enum operand : std::size_t { op_cond, op_src_0, op_src_1, op_dst };
inline constexpr std::size_t operand_count = 4;
template <class T>
using per_operand = std::array<T, operand_count>;

struct loop_dim {
    std::int64_t extent = 1;
    per_operand<std::int64_t> stride_bytes{};
};

// A Select as nested loops over dst's elements, innermost first: no dimension of extent 1, ordered
// by dst's stride, which is positive, and no two neighbours that could be one. Strides of inputs
// may be negative.
struct loop_nest {
    int rank = 0;
    std::array<loop_dim, max_rank> loops{};
    per_operand<std::int64_t> width_bytes{};
    // From the operand's element {0,...,0} to where the loops begin; not 0 where dst runs
    // backwards.
    per_operand<std::int64_t> first_bytes{};
    std::int64_t elements = 0; // of dst; where 0 the rank is 0 as well

    const loop_dim& operator[](int i) const { return loops[static_cast<std::size_t>(i)]; }
    loop_dim& operator[](int i) { return loops[static_cast<std::size_t>(i)]; }
};

// Validates as make_select_plan says, then normalises.
loop_nest make_loop_nest(const select_desc& desc);

} // namespace maskwise
