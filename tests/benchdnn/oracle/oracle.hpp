#pragma once

// Computes a graph independently of any library. Select and other ops that only move elements copy
// bytes. All arithmetic is in double precision.
//
// Arithmetic results declared f32 stay f64 until compare, so that the oracle adds no rounding of
// its own. Results declared bf16, f16 or an integer type are rounded to that type. An f32 tensor
// whose bytes were only moved stays f32, so that compare demands equal bits.

#include "data/tensor.hpp"
#include "model/graph.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace maskwise::bench {

using tensor_map = std::map<std::size_t, tensor>;
using operands = std::vector<const tensor*>;

// The kind of the graph's first operator that the oracle lacks, or empty.
std::string first_op_without_oracle(const graph& g);

// Values of the tensors in `wanted`. `inputs` holds every graph input. All shapes must be known.
// Throws input_error if shapes do not fit or the oracle lacks an operator.
tensor_map evaluate(const graph& g, tensor_map inputs, const std::set<std::size_t>& wanted);

// One op's outputs, in order.
std::vector<tensor> evaluate_op(const op& o, const operands& inputs);

// The type that holds a result of arithmetic whose declared type is `declared`.
data_type arithmetic_type(data_type declared);

} // namespace maskwise::bench
