#include "onednn/partition/attention_executable.hpp"

#include "attention/attention_checks.hpp"
#include "attention/run_attention.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "onednn/library/guard.hpp"
#include "onednn/partition/gains.hpp"
#include "onednn/partition/region_tensors.hpp"
#include "onednn/record/tensor_data.hpp"
#include "onednn/record/translate.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <utility>

namespace maskwise::onednn {
namespace {

// The last two dimensions change places.
tensor_desc turned(tensor_desc matrix) {
    const int rank = matrix.extents.rank();
    std::swap(matrix.extents[rank - 1], matrix.extents[rank - 2]);
    std::swap(matrix.strides_bytes[rank - 1], matrix.strides_bytes[rank - 2]);
    return matrix;
}

tensor_desc describe_matrix(const std::vector<abi::logical_tensor>& given,
                            const graph::matrix_input& input) {
    const auto desc = describe_input(given, input.tensor.id);
    if (desc.extents.rank() < 2)
        throw invalid_argument("tensor " + std::to_string(input.tensor.id) +
                               " has fewer than two dimensions");
    return input.is_turned ? turned(desc) : desc;
}

// Dimension d of `moved` is dimension order[d] of what is returned.
tensor_desc moved_back(const tensor_desc& moved, const std::vector<int>& order) {
    tensor_desc back = moved;
    for (std::size_t d = 0; d < order.size(); ++d) {
        back.extents[order[d]] = moved.extents[static_cast<int>(d)];
        back.strides_bytes[order[d]] = moved.strides_bytes[static_cast<int>(d)];
    }
    return back;
}

dims without_last(const dims& all) {
    return dims(std::span(all.begin(), static_cast<std::size_t>(all.rank() - 1)));
}

// Gives an output that the client left open these extents, dense.
void complete(abi::logical_tensor& output, const dims& extents) {
    if (output.layout_type != abi::layout_any) return;
    output.ndims = extents.rank();
    output.layout_type = abi::layout_strided;
    std::ranges::copy(extents, output.dims);
    std::ranges::copy(dense_strides(extents, 1), output.layout.strides);
}

abi::logical_tensor& output_of(std::vector<abi::logical_tensor>& outputs, std::size_t id) {
    return outputs[static_cast<std::size_t>(find_by_id(outputs, id) - outputs.data())];
}

bool lacks_address(const attention_desc& desc, const attention_operands& at) {
    const auto lacks = [](const tensor_desc& operand, const void* address) {
        return operand.type != data_type::undef && address == nullptr;
    };
    return lacks(desc.query, at.query) || lacks(desc.key, at.key) || lacks(desc.value, at.value) ||
           lacks(desc.cond, at.cond) || lacks(desc.bias, at.bias) || lacks(desc.dst, at.dst) ||
           lacks(desc.statistics, at.statistics);
}

// oneDNN's clients compare with its operators, so their roundings are the default.
attention_order wanted_order() {
    const auto wanted = read_environment("MASKWISE_ATTENTION_ORDER").value_or("operators");
    if (wanted == "operators") return attention_order::operators;
    if (wanted == "tiles") return attention_order::tiles;
    throw invalid_argument("MASKWISE_ATTENTION_ORDER is '" + std::string(wanted) +
                           "', expected 'operators' or 'tiles'");
}

bool is_number(const tensor_desc& operand) {
    return element_count(operand.extents) == 1;
}

} // namespace

attention_executable::attention_executable(const row_region& region, const compile_call& call)
    : executable(call), chain_(region.chain), query_(region.attention->query.tensor.id),
      key_(region.attention->key.tensor.id), value_(region.attention->value.tensor.id),
      dst_(region.attention->dst), output_ids_(region.output_ids) {
    require_types(region, inputs_);
    require_types(region, outputs_);
    require_outputs(region, outputs_);
    require_boundary(chain_, inputs_);
    for (const auto& operand : chain_.operands)
        operands_.push_back(describe_input(inputs_, operand.id));
    form_ = graph::make_attention_form(chain_, operands_);
    attention_desc desc = describe_inputs(*region.attention);
    describe_outputs(*region.attention, desc);
    plan_ = make_attention_plan(desc, active_isa());
    if (plan_->heads * plan_->rows * plan_->keys * plan_->columns <= 0)
        throw invalid_argument("the attention is empty");
    const std::string reason = reason_against_attention(*plan_, region.settings);
    if (!reason.empty()) throw invalid_argument(reason);
    count_needed();
}

attention_desc
attention_executable::describe_inputs(const graph::attention_chain& attention) const {
    attention_desc desc;
    desc.query = describe_matrix(inputs_, attention.query);
    desc.key = describe_matrix(inputs_, attention.key);
    desc.value = describe_matrix(inputs_, attention.value);
    if (form_.cond) desc.cond = operands_[*form_.cond];
    if (form_.bias) desc.bias = operands_[*form_.bias];
    desc.cond_masks = form_.cond_masks;
    desc.bias_on_fill = form_.bias_on_fill;
    if (form_.is_causal) desc.causal = causal_boundary::top_left; // moved in every execution
    desc.inf_as_zero = chain_.soft_max->inf_as_zero;
    desc.order = wanted_order();
    desc.weights_type = attention.weights_type;
    return desc;
}

// Outputs that the client left open become dense.
void attention_executable::describe_outputs(const graph::attention_chain& attention,
                                            attention_desc& desc) {
    const dims result = checked_attention(desc).dst.extents;
    if (static_cast<int>(attention.order.size()) != result.rank())
        throw invalid_argument("the rank of attention's result is not known");
    dims moved;
    for (const int d : attention.order) moved.push_back(result[d]);
    auto& dst = output_of(outputs_, dst_);
    complete(dst, moved);
    desc.dst = to_desc(from_abi(dst));
    if (desc.dst.extents != moved)
        throw invalid_shape("dst is " + to_string(desc.dst.extents) + ", expected " +
                            to_string(moved));
    desc.dst = moved_back(desc.dst, attention.order);
    if (!chain_.statistics) return;
    dims one_each = result;
    one_each[result.rank() - 1] = 1;
    auto& statistics = output_of(outputs_, chain_.statistics->id);
    complete(statistics, one_each);
    desc.statistics = to_desc(from_abi(statistics));
    desc.statistics.extents = without_last(desc.statistics.extents);
    desc.statistics.strides_bytes = without_last(desc.statistics.strides_bytes);
}

// Only these entries of the client's lists have to be there.
void attention_executable::count_needed() {
    const auto need = [this](std::size_t id) {
        const auto position = static_cast<std::size_t>(find_by_id(inputs_, id) - inputs_.data());
        needed_inputs_ = std::max(needed_inputs_, position + 1);
    };
    for (const std::size_t id : {query_, key_, value_}) need(id);
    for (const auto& operand : chain_.operands) need(operand.id);
    for (const auto& term : chain_.boundary) need(term.tensor.id);
    for (std::size_t i = 0; i < outputs_.size(); ++i)
        if (makes(outputs_[i].id)) needed_outputs_ = i + 1;
}

bool attention_executable::makes(std::size_t id) const {
    return std::ranges::find(output_ids_, id) != output_ids_.end();
}

std::string attention_executable::describe() const {
    return to_string(*plan_);
}

// Null where a tensor has no memory.
const void* attention_executable::address(std::optional<std::size_t> operand,
                                          const tensor_lookup& find) const {
    if (!operand) return nullptr;
    const auto* const tensor = find(chain_.operands[*operand].id);
    return is_number(operands_[*operand]) ? data_of(tensor) : memory_of(tensor);
}

// Nothing where one has no memory.
std::optional<attention_numbers>
attention_executable::read_numbers(const tensor_lookup& find) const {
    std::array<float, max_row_operands> values{};
    for (std::size_t i = 0; i < operands_.size(); ++i) {
        if (!is_number(operands_[i]) || !computes_in_f32(operands_[i].type)) continue;
        const void* const at = address(i, find);
        if (at == nullptr) return std::nullopt;
        values[i] = number_at(*plan_, operands_[i].type, at);
    }
    const auto boundary = boundary_offset(chain_, find);
    if (!boundary) return std::nullopt;
    return graph::attention_numbers_of(form_, values, *boundary);
}

abi::status attention_executable::execute(const execute_call& call) const {
    if (!call.has_lists() || call.num_inputs < needed_inputs_ || call.num_outputs < needed_outputs_)
        return abi::invalid_arguments;
    // The lists may hold a result among the inputs, too.
    const auto input = [&](std::size_t id) -> abi::const_tensor {
        return call.inputs[find_by_id(inputs_, id) - inputs_.data()];
    };
    const auto output = [&](std::size_t id) {
        return memory_of(call.outputs[find_by_id(outputs_, id) - outputs_.data()]);
    };
    const auto numbers = read_numbers(std::cref(input));
    const attention_operands at{memory_of(input(query_)),
                                memory_of(input(key_)),
                                memory_of(input(value_)),
                                address(form_.cond, std::cref(input)),
                                address(form_.bias, std::cref(input)),
                                output(dst_),
                                chain_.statistics ? output(chain_.statistics->id) : nullptr};
    if (!numbers || lacks_address(plan_->desc, at)) return abi::invalid_arguments;
    return guarded([&] { run_attention(*plan_, at, *numbers); });
}

} // namespace maskwise::onednn
