#pragma once

// The oracle's operators. Each function returns the op's outputs in order.

#include "oracle/oracle.hpp"

namespace maskwise::bench {

using op_oracle = std::vector<tensor> (*)(const op&, const operands&);

// movement.cpp: operators that move elements. Reorder may also convert elements.
std::vector<tensor> oracle_select(const op& o, const operands& in);
std::vector<tensor> oracle_transpose(const op& o, const operands& in);
std::vector<tensor> oracle_reshape(const op& o, const operands& in);
std::vector<tensor> oracle_reorder(const op& o, const operands& in);

// arithmetic.cpp
std::vector<tensor> oracle_elementwise(const op& o, const operands& in);
std::vector<tensor> oracle_type_cast(const op& o, const operands& in);
std::vector<tensor> oracle_matmul(const op& o, const operands& in);
std::vector<tensor> oracle_gen_index(const op& o, const operands& in);
std::vector<tensor> oracle_softmax(const op& o, const operands& in);
std::vector<tensor> oracle_softmax_backward(const op& o, const operands& in);
std::vector<tensor> oracle_reduce_sum(const op& o, const operands& in);

// quantize.cpp
std::vector<tensor> oracle_quantize(const op& o, const operands& in);
std::vector<tensor> oracle_dequantize(const op& o, const operands& in);
std::vector<tensor> oracle_dynamic_dequantize(const op& o, const operands& in);

// Rounds the results of arithmetic to arithmetic_type of output `index`.
tensor arithmetic_result(const op& o, std::size_t index, dims shape,
                         const std::vector<double>& values);

} // namespace maskwise::bench
