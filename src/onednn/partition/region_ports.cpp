#include "onednn/partition/region_ports.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <string>

namespace maskwise::onednn {

bool is_among(const std::vector<std::size_t>& ids, std::size_t id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

tensor_map by_id(const std::vector<abi::logical_tensor>& tensors) {
    tensor_map map;
    for (const auto& tensor : tensors) map.emplace(tensor.id, tensor);
    return map;
}

const abi::logical_tensor& recorded_output(const row_region& region, std::size_t id) {
    for (const auto& op : region.records)
        if (const auto* output = find_by_id(op->outputs, id)) return *output;
    throw invalid_argument("tensor " + std::to_string(id) + " is not made in the partition");
}

op_list records_of(const op_list& all, std::span<const graph::op> ops) {
    op_list records;
    for (const auto& op : ops) records.push_back(find_op(all, op.id));
    return records;
}

std::vector<abi::logical_tensor> own_inputs(const row_region& region,
                                            std::vector<abi::logical_tensor> given) {
    constexpr std::size_t no_tensor = scratchpad_id - 1; // an id that none has
    for (auto& tensor : given)
        if (graph::makes(region.ops, tensor.id) || !graph::reads(region.ops, tensor.id))
            tensor.id = no_tensor;
    while (!given.empty() && given.back().id == no_tensor) given.pop_back();
    return given;
}

std::size_t own_output_count(const std::vector<std::size_t>& ids,
                             const std::vector<abi::logical_tensor>& given) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < given.size(); ++i)
        if (is_among(ids, given[i].id)) count = i + 1;
    return count;
}

tensor_map outputs_of(const row_region& region, const std::vector<abi::logical_tensor>& outputs) {
    tensor_map map = by_id(outputs);
    std::erase_if(map,
                  [&](const auto& entry) { return !is_among(region.output_ids, entry.first); });
    return map;
}

tensor_map values_between(const row_region& region, const graph::division& parts) {
    tensor_map tensors;
    for (const std::size_t id : graph::handed_over(parts)) {
        if (id == region.chain.scores) continue;
        auto tensor = recorded_output(region, id);
        tensor.layout_type = abi::layout_any;
        tensors.emplace(id, tensor);
    }
    return tensors;
}

void require_types(const row_region& region, const std::vector<abi::logical_tensor>& given) {
    for (const auto& op : region.records)
        for (const auto* list : {&op->inputs, &op->outputs})
            for (const auto& tensor : *list) {
                const auto* now = find_by_id(given, tensor.id);
                if (now != nullptr && now->data_type != tensor.data_type)
                    throw invalid_argument("tensor " + std::to_string(tensor.id) +
                                           " has another type than at add_op");
            }
}

void refuse_host_scalars(const op_list& part, const tensor_map& given) {
    const auto is_host_scalar = [&](const abi::logical_tensor& input) {
        const auto now = given.find(input.id);
        return input.property == abi::property_host_scalar ||
               (now != given.end() && now->second.property == abi::property_host_scalar);
    };
    for (const auto& op : part)
        for (const auto& input : op->inputs)
            if (is_host_scalar(input))
                throw invalid_argument("operator " + std::to_string(op->id) +
                                       " of a part takes a host scalar");
}

} // namespace maskwise::onednn
