#include "fusion/compiled_gradients.hpp"

#include "attention/attention_checks.hpp"
#include "attention/run_gradients.hpp"
#include "base/cpu.hpp"
#include "base/error.hpp"
#include "base/scratch.hpp"
#include "fusion/sum_heads.hpp"
#include "plan/collapse.hpp"
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

// A gradients_chain multiplies the scores' gradient only by the scale before the mask. A Tanh or a
// factor after the mask would need further factors, so both are refused.
attention_form form_of(const row_chain& rows, std::span<const tensor_desc> operands) {
    attention_form form =
        make_attention_form(rows, [&](std::size_t i) { return is_one_number(operands[i]); });
    if (form.has_tanh || !form.on_fill.empty())
        throw argument_error("the scores have a Tanh or a factor after the mask");
    return form;
}

// With grouped queries, keys and values have one head for each group.
void require_one_head(const tensor_desc& operand) {
    if (operand.extents.rank() < 3 || heads_of(operand) != 1)
        throw shape_error(to_string(operand.extents) + " does not have one head per group");
}

} // namespace

compiled_gradients::compiled_gradients(const gradients_chain& chain,
                                       std::span<const tensor_desc> inputs,
                                       const std::array<tensor_desc, 3>& results)
    : results_(results), rounds_heads_(chain.grouped_queries && chain.head_type != data_type::f32),
      head_type_(chain.head_type) {
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
    attention.scale = 1; // known at execution
    attention.grouped_queries = chain.grouped_queries && !rounds_heads_;
    if (chain.grouped_queries)
        for (const tensor_desc* shared : {&attention.key, &attention.value})
            require_one_head(*shared);
    describe_results(desc);
    numbers_ = {std::move(form), chain.rows, operands, attention.query.extents.rank()};
    plan_ = make_gradients_plan(desc, active_isa());
    complete_results();
}

void compiled_gradients::describe_results(attention_gradients_desc& desc) const {
    desc.query_gradient = results_[0];
    desc.key_gradient = rounds_heads_ ? tensor_desc{head_type_, {}, {}} : results_[1];
    desc.value_gradient = rounds_heads_ ? tensor_desc{head_type_, {}, {}} : results_[2];
}

void compiled_gradients::complete_results() {
    const attention_gradients_desc& desc = plan_->desc;
    const std::array planned{&desc.query_gradient, &desc.key_gradient, &desc.value_gradient};
    for (std::size_t i = 0; i < planned.size(); ++i) {
        dims extents = planned[i]->extents;
        if (i > 0 && rounds_heads_) extents[extents.rank() - 3] = 1;
        results_[i] = complete(results_[i], extents);
        require_apart(results_[i], "a gradient");
    }
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
    if (rounds_heads_) return run_rounded(addresses, numbers);
    run_gradients(*plan_, addresses, numbers);
}

void compiled_gradients::run_rounded(attention_gradients_operands addresses,
                                     const attention_numbers& numbers) const {
    const tensor_desc &keys = plan_->desc.key_gradient, &values = plan_->desc.value_gradient;
    void *const key_sums = addresses.key_gradient, *const value_sums = addresses.value_gradient;
    const std::size_t key_bytes = padded_bytes(static_cast<std::size_t>(span_bytes(keys)));
    const std::size_t bytes =
        key_bytes + static_cast<std::size_t>(span_bytes(values)) + scratch_alignment;
    with_scratch(scratch_, static_cast<std::int64_t>(bytes), [&](std::byte* memory) {
        addresses.key_gradient = memory;
        addresses.value_gradient = memory + key_bytes;
        run_gradients(*plan_, addresses, numbers);
        const attention_kernels& kernels = *attention().products;
        sum_heads(kernels, keys, memory, results_[1], static_cast<std::byte*>(key_sums));
        sum_heads(kernels, values, memory + key_bytes, results_[2],
                  static_cast<std::byte*>(value_sums));
    });
}

} // namespace maskwise::fusion
