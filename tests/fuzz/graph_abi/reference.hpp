#pragma once

#include "description.hpp"

#include <cstdint>
#include <vector>

namespace maskwise::fuzz {

// Whether the operator is a Select by its specification. partition_create_with_op also accepts
// other operators, which oneDNN runs.
bool is_select(const op_description& op);

// The expected result of compile, from the operator's specification and docs/compatibility.md.
// `either`: the description is unusual, and compile may succeed or fail.
enum class verdict { must_work, must_refuse, either };

verdict judge(const op_description& select, const compile_description& description);

// dst's extents after a successful compile.
std::vector<std::int64_t> expected_extents(const op_description& select,
                                           const compile_description& description);

// The first tensor with that id, or null.
const logical_tensor* find(const std::vector<logical_tensor>& tensors, std::size_t id);

} // namespace maskwise::fuzz
