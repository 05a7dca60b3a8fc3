#include "graph/attention_chain.hpp"

#include <algorithm>
#include <numeric>

namespace maskwise::graph {
namespace {

bool is_product(const op* op, std::size_t output) {
    return op != nullptr && op->kind == op_kind::mat_mul && op->inputs.size() == 2 &&
           op->outputs.size() == 1 && op->outputs[0].id == output;
}

// Applies a StaticTranspose after those before it. False where its order is not a permutation.
bool transpose(std::span<const std::int64_t> by, std::vector<int>& order) {
    const auto rank = static_cast<std::int64_t>(order.size());
    std::vector<int> made;
    for (const std::int64_t from : by) {
        const std::int64_t d = from < 0 ? from + rank : from;
        if (d < 0 || d >= rank) return false;
        made.push_back(order[static_cast<std::size_t>(d)]);
    }
    if (!std::ranges::is_permutation(made, order)) return false;
    order = std::move(made);
    return true;
}

// Follows the result through the operators that move it; returns how many these are.
std::size_t follow_moves(const graph_index& values, attention_chain& attention) {
    std::size_t moves = 0;
    for (;; ++moves) {
        const op* user = values.only_user(attention.dst);
        if (user == nullptr) return moves;
        const bool moves_dimensions = user->kind == op_kind::static_transpose;
        if (!moves_dimensions && user->kind != op_kind::reorder) return moves;
        if (moves_dimensions && !transpose(user->order, attention.order)) return moves;
        attention.dst = user->outputs[0].id;
    }
}

} // namespace

std::optional<attention_chain> find_attention(std::span<const op> partition,
                                              std::span<const std::size_t> output_ids,
                                              const row_chain& chain) {
    if (!chain.soft_max || chain.quantize) return std::nullopt;
    const graph_index values(partition);
    const op* const scores = values.maker(chain.scores);
    const op* const product = values.only_user(chain.result);
    if (!is_product(scores, chain.scores) || scores->outputs[0].type != data_type::f32 ||
        product == nullptr || !is_product(product, product->outputs[0].id) ||
        product->transpose_a || product->inputs[0].id != chain.result)
        return std::nullopt;
    attention_chain found{{scores->inputs[0], scores->transpose_a},
                          {scores->inputs[1], !scores->transpose_b},
                          {product->inputs[1], product->transpose_b},
                          product->inputs[0].type,
                          product->outputs[0].id,
                          {}};
    for (const auto* input : {&found.query, &found.key, &found.value}) {
        if (values.maker(input->tensor.id) != nullptr || !input->tensor.rank_known)
            return std::nullopt;
        const auto rank = static_cast<std::size_t>(input->tensor.extents.rank());
        found.order.resize(std::max(found.order.size(), rank));
    }
    std::iota(found.order.begin(), found.order.end(), 0);
    const std::size_t moves = follow_moves(values, found);
    const bool is_whole = chain.op_ids.size() + 2 + moves == partition.size();
    const bool all_leave = std::ranges::all_of(output_ids, [&](std::size_t id) {
        return id == found.dst || (chain.statistics && id == chain.statistics->id);
    });
    return is_whole && all_leave ? std::optional(std::move(found)) : std::nullopt;
}

} // namespace maskwise::graph
