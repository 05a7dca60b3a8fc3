#include "onednn/region_ops.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace maskwise::onednn {

const abi::logical_tensor& described(const region_record& region, std::size_t id) {
    for (const auto& op : region.ops)
        if (const auto* output = find_by_id(op->outputs, id)) return *output;
    throw invalid_argument("tensor " + std::to_string(id) + " is not made in the partition");
}

bool is_among(const std::vector<std::size_t>& ids, std::size_t id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

tensor_map by_id(const std::vector<abi::logical_tensor>& tensors) {
    tensor_map map;
    for (const auto& tensor : tensors) map.emplace(tensor.id, tensor);
    return map;
}

namespace {

constexpr std::size_t no_tensor = scratchpad_id - 1; // an id that none has

} // namespace

std::vector<abi::logical_tensor> own_inputs(const region_record& region,
                                            std::vector<abi::logical_tensor> given) {
    const op_list ops = ops_of(region);
    const auto is_read = [&](std::size_t id) {
        return !makes(ops, id) && std::any_of(ops.begin(), ops.end(), [id](const op_record* op) {
            return find_by_id(op->inputs, id) != nullptr;
        });
    };
    for (auto& tensor : given)
        if (!is_read(tensor.id)) tensor.id = no_tensor;
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

tensor_map outputs_of(const region_record& region,
                      const std::vector<abi::logical_tensor>& outputs) {
    tensor_map map = by_id(outputs);
    std::erase_if(map, [&](const auto& each) { return !is_among(region.output_ids, each.first); });
    return map;
}

op_list ops_of(const region_record& region) {
    op_list list;
    for (const auto& op : region.ops) list.push_back(op.get());
    return list;
}

void divide_ops(const region_record& region, op_list& before, op_list& after) {
    op_list last_first = ops_of(region);
    std::reverse(last_first.begin(), last_first.end());
    std::set<std::size_t> needed{region.chain.scores};
    for (const op_record* op : last_first) {
        if (is_among(region.chain.op_ids, op->id)) continue;
        const bool is_needed =
            std::any_of(op->outputs.begin(), op->outputs.end(),
                        [&](const auto& output) { return needed.contains(output.id); });
        if (is_needed)
            for (const auto& input : op->inputs) needed.insert(input.id);
        (is_needed ? before : after).push_back(op);
    }
    std::reverse(before.begin(), before.end());
    std::reverse(after.begin(), after.end());
}

bool makes(const op_list& ops, std::size_t id) {
    return std::any_of(ops.begin(), ops.end(), [id](const op_record* op) {
        return find_by_id(op->outputs, id) != nullptr;
    });
}

tensor_map handed_over(const region_record& region, const op_list& before, const op_list& after) {
    tensor_map tensors;
    for (const op_record* op : after)
        for (const auto& input : op->inputs) {
            if (!makes(before, input.id) || input.id == region.chain.scores) continue;
            auto tensor = described(region, input.id);
            tensor.layout_type = abi::layout_any;
            tensors.emplace(input.id, tensor);
        }
    return tensors;
}

void require_types(const region_record& region, const std::vector<abi::logical_tensor>& given) {
    for (const auto& op : region.ops)
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
    for (const op_record* op : part)
        for (const auto& input : op->inputs)
            if (is_host_scalar(input))
                throw invalid_argument("operator " + std::to_string(op->id) +
                                       " of a part takes a host scalar");
}

} // namespace maskwise::onednn
