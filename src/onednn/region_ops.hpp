#pragma once

#include "onednn/abi.hpp"
#include "onednn/real_part.hpp"
#include "onednn/region.hpp"

#include <cstddef>
#include <vector>

namespace maskwise::onednn {

// Whose the operators of a region are, and which entries of a client's lists are its ports.

using op_list = std::vector<const op_record*>;

op_list ops_of(const region_record& region);
bool makes(const op_list& ops, std::size_t id);
bool is_among(const std::vector<std::size_t>& ids, std::size_t id);
tensor_map by_id(const std::vector<abi::logical_tensor>& tensors);

// The output of that id, as given at add_op. Throws invalid_argument where none has it.
const abi::logical_tensor& described(const region_record& region, std::size_t id);

// The client's list, where entries keep their places but have an id only if the partition reads
// them: what it makes itself is not the client's to give. Those behind the last are left out; they
// need not be there at execution.
std::vector<abi::logical_tensor> own_inputs(const region_record& region,
                                            std::vector<abi::logical_tensor> given);
// How many entries of the list, up to the last that has one of the ids.
std::size_t own_output_count(const std::vector<std::size_t>& ids,
                             const std::vector<abi::logical_tensor>& given);
// The partition's own outputs: a list may name others.
tensor_map outputs_of(const region_record& region, const std::vector<abi::logical_tensor>& outputs);

// What the scores are made of comes before the chain, everything else after it.
void divide_ops(const region_record& region, op_list& before, op_list& after);
// Values that the part before makes and the part after uses, laid out as oneDNN likes.
tensor_map handed_over(const region_record& region, const op_list& before, const op_list& after);

// Throws invalid_argument where a tensor has another type than at add_op: values inside the
// partition have the types of add_op, and with others oneDNN would choose its own.
void require_types(const region_record& region, const std::vector<abi::logical_tensor>& given);
// Throws invalid_argument where an operator takes a host scalar. oneDNN takes them inside larger
// partitions only; on a part with one it throws.
void refuse_host_scalars(const op_list& part, const tensor_map& given);

} // namespace maskwise::onednn
