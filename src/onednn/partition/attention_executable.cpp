#include "onednn/partition/attention_executable.hpp"

#include "attention/run_attention.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/partition/gains.hpp"
#include "onednn/partition/region_tensors.hpp"
#include "onednn/record/tensor_data.hpp"
#include "onednn/record/translate.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace maskwise::onednn {
namespace {

// Gives an output that the client left open these extents, dense.
void complete(abi::logical_tensor& output, const dims& extents) {
    if (output.layout_type != abi::layout_any) return;
    output.ndims = extents.rank();
    output.layout_type = abi::layout_strided;
    std::ranges::copy(extents, output.dims);
    std::ranges::copy(dense_strides(extents, 1), output.layout.strides);
}

// oneDNN's clients compare with its operators, so their roundings are the default.
attention_order wanted_order() {
    const auto wanted = read_environment("MASKWISE_ATTENTION_ORDER").value_or("operators");
    if (wanted == "operators") return attention_order::operators;
    if (wanted == "tiles") return attention_order::tiles;
    throw invalid_argument("MASKWISE_ATTENTION_ORDER is '" + std::string(wanted) +
                           "', expected 'operators' or 'tiles'");
}

std::vector<tensor_desc> describe_inputs(const std::vector<abi::logical_tensor>& given,
                                         std::span<const std::size_t> ids) {
    std::vector<tensor_desc> descs;
    for (const std::size_t id : ids) descs.push_back(describe_input(given, id));
    return descs;
}

} // namespace

attention_executable::attention_executable(const row_region& region, const compile_call& call)
    : executable(call), input_ids_(region.block->inputs()), dst_(region.block->result()),
      output_ids_(region.output_ids),
      attention_(*region.block, describe_inputs(inputs_, input_ids_)) {
    require_types(region, inputs_);
    require_types(region, outputs_);
    require_outputs(region, outputs_);
    for (const std::size_t id : input_ids_)
        is_number_.push_back(element_count(describe_input(inputs_, id).extents) == 1);
    tensor_desc statistics;
    if (const auto& made = region.block->rows.statistics) {
        statistics_ = made->id;
        statistics = describe_output(*statistics_, attention_.statistics());
    }
    attention_.plan(wanted_order(), describe_output(dst_, attention_.dst()), statistics);
    const attention_data& plan = attention_.planned();
    if (plan.heads * plan.rows * plan.keys * plan.columns <= 0)
        throw invalid_argument("the attention is empty");
    const std::string reason = reason_against_attention(plan, region.settings);
    if (!reason.empty()) throw invalid_argument(reason);
    count_needed();
}

tensor_desc attention_executable::describe_output(std::size_t id, const dims& extents) {
    auto& output = outputs_[static_cast<std::size_t>(find_by_id(outputs_, id) - outputs_.data())];
    complete(output, extents);
    tensor_desc desc = to_desc(from_abi(output));
    if (desc.extents != extents)
        throw invalid_shape("output " + std::to_string(id) + " is " + to_string(desc.extents) +
                            ", expected " + to_string(extents));
    return desc;
}

// Only these entries of the client's lists have to be there.
void attention_executable::count_needed() {
    for (const std::size_t id : input_ids_) {
        const auto position = static_cast<std::size_t>(find_by_id(inputs_, id) - inputs_.data());
        needed_inputs_ = std::max(needed_inputs_, position + 1);
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i)
        if (makes(outputs_[i].id)) needed_outputs_ = i + 1;
}

bool attention_executable::makes(std::size_t id) const {
    return std::ranges::find(output_ids_, id) != output_ids_.end();
}

std::string attention_executable::describe() const {
    return to_string(attention_.planned());
}

abi::status attention_executable::execute(const execute_call& call) const {
    if (!call.has_lists() || call.num_inputs < needed_inputs_ || call.num_outputs < needed_outputs_)
        return abi::invalid_arguments;
    std::array<const void*, fusion::max_block_inputs> inputs{};
    for (std::size_t i = 0; i < input_ids_.size(); ++i) {
        const auto* tensor = call.inputs[find_by_id(inputs_, input_ids_[i]) - inputs_.data()];
        inputs[i] = is_number_[i] ? data_of(tensor) : memory_of(tensor);
    }
    // The lists may hold a result among the inputs, too.
    const auto output = [&](std::size_t id) {
        return memory_of(call.outputs[find_by_id(outputs_, id) - outputs_.data()]);
    };
    return guarded([&] {
        const auto bound = attention_.bind(std::span(inputs).first(input_ids_.size()), output(dst_),
                                           statistics_ ? output(*statistics_) : nullptr);
        run_attention(attention_.planned(), bound.at, bound.numbers);
    });
}

} // namespace maskwise::onednn
