#include "fusion/compiled_attention.hpp"

#include "attention/attention_checks.hpp"
#include "attention/run_attention.hpp"
#include "base/cpu.hpp"
#include "base/error.hpp"
#include "tensor/broadcast.hpp"
#include "tensor/data_type.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace maskwise::fusion {
namespace {

// Each row action and each number that scales query or key adds at most one score factor.
static_assert(max_row_actions + max_numbers <= max_score_factors);

[[noreturn]] void refuse_pair(const dims& a, const dims& b) {
    throw shape_error(to_string(a) + " and " + to_string(b) + " do not broadcast");
}

std::vector<int> order_of(const dims& shape, const std::vector<int>& order) {
    auto result = order_for(shape.rank(), order);
    if (!result) require_rank(shape, static_cast<int>(order.size()));
    return *std::move(result);
}

tensor_desc matrix_of(const tensor_desc& input, const matrix_input& source) {
    const auto order = order_of(input.extents, source.order);
    const tensor_desc whole = with_strides(input);
    tensor_desc matrix{input.type, {}, {}};
    for (const int d : order) {
        matrix.extents.push_back(whole.extents[d]);
        matrix.strides_bytes.push_back(whole.strides_bytes[d]);
    }
    return matrix;
}

void expand(tensor_desc& matrix, const dims& target) {
    const int missing = target.rank() - matrix.extents.rank();
    dims strides = dims::filled(target.rank(), 0);
    for (int d = 0; d < matrix.extents.rank(); ++d)
        if (matrix.extents[d] == target[missing + d])
            strides[missing + d] = matrix.strides_bytes[d];
    matrix.extents = target;
    matrix.strides_bytes = strides;
}

dims join_outer(const tensor_desc& a, const tensor_desc& b) {
    const auto joined = broadcast_numpy(without_last(a.extents, 2), without_last(b.extents, 2));
    if (!joined) refuse_pair(a.extents, b.extents);
    return *joined;
}

} // namespace

bool is_one_number(const tensor_desc& operand) {
    return element_count(operand.extents) == 1 && computes_in_f32(operand.type);
}

dims broadcast(const dims& a, const dims& b) {
    const auto joined = broadcast_numpy(a, b);
    if (!joined) refuse_pair(a, b);
    return *joined;
}

tensor_desc complete(const tensor_desc& output, const dims& extents) {
    if (output.strides_bytes.empty()) return dense_desc(output.type, extents);
    if (output.extents != extents)
        throw shape_error("an output is " + to_string(output.extents) + ", expected " +
                          to_string(extents));
    return output;
}

void require_rank(const dims& shape, int rank) {
    if (shape.rank() != rank)
        throw shape_error("the shape is " + to_string(shape) + ", but the model says " +
                          std::to_string(rank) + " dimensions");
}

numbers_reader::numbers_reader(attention_form form, const row_chain& rows,
                               std::span<const tensor_desc> operands, int max_rank)
    : form_(std::move(form)), is_causal_(std::ranges::any_of(rows.steps, is_causal)),
      offset_terms_(rows.causal_offset) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const bool is_number = i != form_.cond && i != form_.bias;
        types_.push_back(is_number ? operands[i].type : data_type::undef);
        if (is_number && (!is_one_number(operands[i]) || operands[i].extents.rank() > max_rank))
            throw shape_error("an operand is " + to_string(operands[i].extents) +
                              ", but the model says one element of at most " +
                              std::to_string(max_rank) + " dimensions");
    }
}

attention_numbers numbers_reader::read(const tile_plan& plan,
                                       std::span<const void* const> addresses) const {
    std::array<float, max_row_operands + max_numbers> values{};
    for (std::size_t i = 0; i < types_.size(); ++i) {
        if (types_[i] == data_type::undef) continue;
        if (addresses[i] == nullptr)
            throw argument_error("operand " + std::to_string(i) + " of attention has no memory");
        values[i] = number_at(plan, types_[i], addresses[i]);
    }
    return attention_numbers_of(form_, values);
}

std::optional<mask_rules> numbers_reader::rules(std::span<const void* const> addresses) const {
    if (!is_causal_) return std::nullopt;
    mask_rules rules{.causal = true};
    if (!offset_terms_.empty())
        rules.offsets = {offset_of(offset_terms_, addresses.subspan(types_.size()))};
    return rules;
}

compiled_attention::compiled_attention(const block& matched, std::span<const tensor_desc> inputs,
                                       const block_outputs& outputs) {
    const row_chain& chain = matched.rows;
    const attention_chain& attention = *matched.attention;
    const auto operands = inputs.subspan(3, chain.operands.size() + attention.numbers.size());
    attention_form form =
        make_attention_form(chain, [&](std::size_t i) { return is_one_number(operands[i]); });
    form.scale.insert(form.scale.end(), attention.factors.begin(), attention.factors.end());
    for (const tensor_desc& term : inputs.subspan(3 + operands.size())) require_offset_term(term);
    attention_desc desc;
    desc.query = matrix_of(inputs[0], attention.query);
    desc.key = matrix_of(inputs[1], attention.key);
    desc.value = matrix_of(inputs[2], attention.value);
    describe_scores(desc, form, chain.rank, operands);
    describe_result(desc, attention);
    desc.cond_masks = form.cond_masks;
    desc.bias_on_fill = form.bias_on_fill;
    numbers_ = {std::move(form), chain, operands, dst_.rank()};
    desc.inf_as_zero = chain.soft_max->inf_as_zero;
    desc.nan_as_zero = chain.soft_max->nan_as_zero;
    desc.scale = 1; // known at execution
    desc.weights_type = attention.weights_type;
    describe_outputs(desc, outputs);
    plan_ = make_tile_plan(desc, active_isa());
}

// Sets cond and bias. Broadcasts query and key to the scores' shape, because a cond or a bias may
// have more heads, rows and keys than the product of query and key.
void compiled_attention::describe_scores(attention_desc& desc, const attention_form& form,
                                         const std::optional<int>& model_rank,
                                         std::span<const tensor_desc> operands) {
    tensor_desc &query = desc.query, &key = desc.key;
    dims scores =
        with_matrix(join_outer(query, key), query.extents.end()[-2], key.extents.end()[-2]);
    const auto set_mask = [&](const std::optional<std::size_t>& operand, tensor_desc& target) {
        if (!operand) return;
        target = operands[*operand];
        scores = broadcast(scores, target.extents);
    };
    set_mask(form.cond, desc.cond);
    set_mask(form.bias, desc.bias);
    if (model_rank) require_rank(scores, *model_rank);
    const int rank = scores.rank();
    expand(query, with_matrix(without_last(scores, 2), scores[rank - 2], query.extents.end()[-1]));
    expand(key, with_matrix(without_last(key.extents, 2), scores[rank - 1], key.extents.end()[-1]));
}

// Sets the order and the extents of dst: the second MatMul's result after all transposes.
void compiled_attention::describe_result(const attention_desc& desc,
                                         const attention_chain& attention) {
    const dims result = with_matrix(join_outer(desc.query, desc.value),
                                    desc.query.extents.end()[-2], desc.value.extents.end()[-1]);
    dst_order_ = order_of(result, attention.order);
    for (const int d : dst_order_) dst_.push_back(result[d]);
}

dims compiled_attention::statistics() const {
    dims result = dims::filled(dst_.rank(), 0);
    for (std::size_t d = 0; d < dst_order_.size(); ++d)
        result[dst_order_[d]] = dst_[static_cast<int>(d)];
    result[result.rank() - 1] = 1;
    return result;
}

void compiled_attention::describe_outputs(attention_desc& desc,
                                          const block_outputs& outputs) const {
    const tensor_desc dst = complete(outputs.dst, dst_);
    desc.order = outputs.order;
    desc.dst = dst;
    for (std::size_t d = 0; d < dst_order_.size(); ++d) {
        desc.dst.extents[dst_order_[d]] = dst.extents[static_cast<int>(d)];
        desc.dst.strides_bytes[dst_order_[d]] = dst.strides_bytes[static_cast<int>(d)];
    }
    if (outputs.statistics.type == data_type::undef) return;
    const tensor_desc completed = complete(outputs.statistics, statistics());
    desc.statistics = {completed.type, without_last(completed.extents, 1),
                       without_last(completed.strides_bytes, 1)};
}

compiled_attention::call compiled_attention::bind(const block_addresses& addresses) const {
    const auto inputs = addresses.inputs;
    const auto operands = inputs.subspan(3, numbers_.operands());
    const auto address = [&](const std::optional<std::size_t>& operand) {
        return operand ? operands[*operand] : nullptr;
    };
    const attention_form& form = numbers_.form();
    const attention_operands pointers{inputs[0],           inputs[1],          inputs[2],
                                      address(form.cond),  address(form.bias), addresses.dst,
                                      addresses.statistics};
    require_addresses(plan_->desc, pointers);
    const auto numbers = inputs.subspan(3);
    return {pointers, numbers_.read(*plan_, numbers), numbers_.rules(numbers)};
}

void compiled_attention::run(const block_addresses& addresses, const parallel_loop* loop,
                             block_scratch* memory) const {
    call bound = bind(addresses);
    if (bound.rules) bound.operands.rules = &*bound.rules;
    run_attention(*plan_, bound.operands, bound.numbers, loop_for(*plan_, loop), memory);
}

} // namespace maskwise::fusion
