#include "fusion/host_policy.hpp"

#include "base/error.hpp"
#include "fusion/attention_form.hpp"
#include "fusion/chain_finder.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>
#include <array>

namespace maskwise::fusion {
namespace {

// Whether every operand of the chain has a known rank of at most the attention's rank.
bool operands_fit(const row_chain& chain, const attention_chain& attention) {
    return std::ranges::all_of(chain.operands, [&](const logical_tensor& operand) {
        return operand.rank_known &&
               operand.extents.rank() <= static_cast<int>(attention.order.size());
    });
}

// Throws argument_error if the attention kernels do not support the chain.
void require_form(const row_chain& chain) {
    const auto is_number = [&](std::size_t i) {
        return is_one_element(chain.operands[i]) && computes_in_f32(chain.operands[i].type);
    };
    make_attention_form(chain, is_number);
}

} // namespace

bool host_policy::comes_from_product(std::size_t value, int depth) const {
    const op* const producer = maker(value);
    if (producer == nullptr || depth == 0) return false;
    if (producer->kind == op_kind::mat_mul) return true;
    if (producer->kind == op_kind::soft_max || producer->kind == op_kind::static_transpose)
        return false;
    return std::ranges::any_of(producer->inputs, [&](const logical_tensor& input) {
        return comes_from_product(input.id, depth - 1);
    });
}

// The row is the input that is more likely to be the scores. The criteria, in this order, are: more
// than one element, not a constant, computed from a MatMul's result, computed by an operator, a
// higher rank, fewer extents of 1.
std::optional<std::size_t> host_policy::row_of(const op& user, std::size_t a, std::size_t b) const {
    if (a == b) return a;
    const auto badness = [&](std::size_t i) {
        constexpr int most_steps = 8;
        const logical_tensor& input = user.inputs[i];
        const auto ones = std::ranges::count(input.extents, 1);
        return std::array<std::int64_t, 6>{is_one_element(input),
                                           input.property == graph::property_kind::constant,
                                           !comes_from_product(input.id, most_steps),
                                           maker(input.id) == nullptr,
                                           input.rank_known ? -input.extents.rank() : -max_rank,
                                           ones};
    };
    const std::size_t row = badness(a) <= badness(b) ? a : b;
    return is_one_element(user.inputs[row]) ? std::nullopt : std::optional(row);
}

block find_block(const op& soft_max, const match_policy& policy) {
    block matched{find_chain(soft_max, policy), {}};
    try {
        require_form(matched.rows);
        matched.attention = find_attention(matched.rows, policy);
        if (matched.attention && !operands_fit(matched.rows, *matched.attention))
            matched.attention.reset();
    } catch (const error&) { // the block is only the chain
    }
    return matched;
}

} // namespace maskwise::fusion
