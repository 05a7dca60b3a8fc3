#include "fusion/compiled_gradients.hpp"

#include "attention/attention_checks.hpp"
#include "attention/run_gradients.hpp"
#include "base/cpu.hpp"
#include "base/error.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <utility>

namespace maskwise::fusion {
namespace {

tensor_desc without_last_one(tensor_desc statistics) {
    const int rank = statistics.extents.rank();
    if (rank == 0 || statistics.extents[rank - 1] != 1)
        throw shape_error("statistics are " + to_string(statistics.extents) +
                          ", expected one per row");
    statistics.extents = without_last(statistics.extents, 1);
    statistics.strides_bytes = without_last(statistics.strides_bytes, 1);
    return statistics;
}

// The scale is a factor of the whole gradient, so no factor may follow a mask or a Tanh.
attention_form form_of(const row_chain& rows, std::span<const tensor_desc> operands) {
    attention_form form =
        make_attention_form(rows, [&](std::size_t i) { return is_one_number(operands[i]); });
    if (form.has_tanh || !form.on_fill.empty())
        throw argument_error("the scores are not scaled first");
    return form;
}

// A sum over a group's heads has one head.
void require_one_head(const tensor_desc& operand) {
    if (operand.extents.rank() < 3 || heads_of(operand) != 1)
        throw shape_error(to_string(operand.extents) + " does not have one head per group");
}

} // namespace

compiled_gradients::compiled_gradients(const gradients_chain& chain,
                                       std::span<const tensor_desc> inputs,
                                       const std::array<tensor_desc, 3>& results) {
    const auto operands = inputs.subspan(gradient_tensors, chain.rows.operands.size());
    for (const tensor_desc& term : inputs.subspan(gradient_tensors + operands.size()))
        require_offset_term(term);
    attention_form form = form_of(chain.rows, operands);
    attention_gradients_desc desc;
    attention_desc& attention = desc.attention;
    attention.query = with_strides(inputs[0]);
    attention.key = with_strides(inputs[1]);
    attention.value = with_strides(inputs[2]);
    attention.dst = with_strides(inputs[3]);
    desc.dst_gradient = with_strides(inputs[4]);
    attention.statistics = without_last_one(with_strides(inputs[5]));
    if (form.cond) attention.cond = operands[*form.cond];
    if (form.bias) attention.bias = operands[*form.bias];
    attention.cond_masks = form.cond_masks;
    attention.bias_on_fill = form.bias_on_fill;
    attention.scale = 1; // execution has the scale
    attention.grouped_queries = chain.grouped_queries;
    if (chain.grouped_queries)
        for (const tensor_desc* shared : {&attention.key, &attention.value})
            require_one_head(*shared);
    desc.query_gradient = results[0];
    desc.key_gradient = results[1];
    desc.value_gradient = results[2];
    numbers_ = {std::move(form), chain.rows, operands, attention.query.extents.rank()};
    plan_ = make_gradients_plan(desc, active_isa());
}

void compiled_gradients::run(std::span<const void* const> inputs,
                             const std::array<void*, 3>& results) const {
    if (std::ranges::count(inputs, nullptr) + std::ranges::count(results, nullptr) > 0)
        throw argument_error("a tensor of the gradients has no memory");
    const auto operands = inputs.subspan(gradient_tensors);
    const auto address = [&](const std::optional<std::size_t>& operand) {
        return operand ? operands[*operand] : nullptr;
    };
    const attention_form& form = numbers_.form();
    attention_gradients_operands addresses;
    addresses.attention = {inputs[0],
                           inputs[1],
                           inputs[2],
                           address(form.cond),
                           address(form.bias),
                           const_cast<void*>(inputs[3]),
                           const_cast<void*>(inputs[5])};
    addresses.dst_gradient = inputs[4];
    addresses.query_gradient = results[0];
    addresses.key_gradient = results[1];
    addresses.value_gradient = results[2];
    const std::optional<mask_rules> rules = numbers_.rules(operands);
    if (rules) addresses.attention.rules = &*rules;
    attention_numbers numbers = numbers_.read(attention(), operands);
    numbers.gradients_by_operators = true;
    run_gradients(*plan_, addresses, numbers);
}

} // namespace maskwise::fusion
