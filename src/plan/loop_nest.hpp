#pragma once

#include "plan/collapse.hpp"
#include "tensor/tensor_desc.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace maskwise {

// Operands are numbered in the order of select_desc.
enum operand : std::size_t { op_cond, op_src_0, op_src_1, op_dst };
inline constexpr std::size_t operand_count = 4;
template <class T>
using per_operand = std::array<T, operand_count>;
inline constexpr per_operand<std::size_t> every_operand{op_cond, op_src_0, op_src_1, op_dst};

inline constexpr per_operand<const char*> operand_names{"cond", "src_0", "src_1", "dst"};
inline per_operand<const tensor_desc*> operands_of(const select_desc& desc) {
    return {&desc.cond, &desc.src_0, &desc.src_1, &desc.dst};
}

using loop_dim = basic_loop<operand_count>;
using loop_nest = basic_loop_nest<operand_count>;

// Checks the operands as make_select_plan documents, then collapses their loops.
loop_nest make_loop_nest(const select_desc& desc);

} // namespace maskwise
