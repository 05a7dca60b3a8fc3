#pragma once

#include "graph/op_set.hpp"
#include "onednn/partition/onednn_subgraph.hpp"
#include "onednn/record/claim.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace maskwise::onednn {

// Which entries of a client's lists are the ports of a region, and what its parts may take.

bool is_among(const std::vector<std::size_t>& ids, std::size_t id);
tensor_map by_id(const std::vector<abi::logical_tensor>& tensors);

// The output of that id, as given at add_op. Throws invalid_argument where none has it.
const abi::logical_tensor& recorded_output(const row_region& region, std::size_t id);
// The records of these operators, which are among `all`.
op_list records_of(const op_list& all, std::span<const graph::op> ops);

// The client's list, where entries keep their places but have an id only if the region reads them:
// what the region makes is not the client's to give. Those behind the last are left out; they need
// not be there at execution.
std::vector<abi::logical_tensor> own_inputs(const row_region& region,
                                            std::vector<abi::logical_tensor> given);
// How many entries of the list, up to the last that has one of the ids.
std::size_t own_output_count(const std::vector<std::size_t>& ids,
                             const std::vector<abi::logical_tensor>& given);
// The region's own outputs: a list may name others.
tensor_map outputs_of(const row_region& region, const std::vector<abi::logical_tensor>& outputs);

// Values that pass from the part before the chain to the part after it, laid out as oneDNN likes.
tensor_map values_between(const row_region& region, const graph::division& parts);

// Throws invalid_argument where a tensor has another type than at add_op: values inside the
// partition have the types of add_op, and with others oneDNN would choose its own.
void require_types(const row_region& region, const std::vector<abi::logical_tensor>& given);
// Throws invalid_argument where an operator takes a host scalar. oneDNN takes them inside larger
// partitions only; on a part with one it throws.
void refuse_host_scalars(const op_list& part, const tensor_map& given);

} // namespace maskwise::onednn
