#pragma once

// Computes a graph independently of any library. Select and other ops that only move elements move
// bytes; all arithmetic is in double precision.
//
// An f32 result of arithmetic stays a double (dtype
// f64) until it is compared, so that rounding in between is the library's. Results declared bf16,
// f16 or an integer are rounded, because the graph says so. An f32 tensor whose bytes were only
// moved keeps dtype f32, so compare knows that it must match to the bit.

#include "data/tensor.hpp"
#include "model/graph.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace maskwise::bench {

using tensor_map = std::map<std::size_t, tensor>;
using operands = std::vector<const tensor*>;

// The first operator of the graph that the oracle lacks, or empty.
std::string first_op_without_oracle(const graph& g);

// Values of the tensors in `wanted`. `inputs` holds every graph input; `g` has known shapes.
// Throws input_error when shapes do not fit.
tensor_map evaluate(const graph& g, tensor_map inputs, const std::set<std::size_t>& wanted);

// One op's outputs, in order.
std::vector<tensor> evaluate_op(const op& o, const operands& inputs);

// The type in which a result of arithmetic declared `declared` is kept.
data_type arithmetic_type(data_type declared);

} // namespace maskwise::bench
