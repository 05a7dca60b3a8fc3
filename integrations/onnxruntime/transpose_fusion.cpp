#include "transpose_fusion.hpp"

#include <algorithm>

namespace maskwise::ort {
namespace {

bool is_f16(const runtime& with, const abi::value_info* value) {
    return facts_of(with, value).element == abi::element_f16;
}

// What the fusion takes for a Transpose of the outermost dimension: {1, ..., 0, last} and
// {1, ..., last, 0}.
bool turns_batch(const runtime& with, const abi::node* transpose) {
    const auto order = attributes_of(with, transpose, "perm");
    if (!order || order->size() < 3 || order->front() != 1) return false;
    const auto last = static_cast<std::int64_t>(order->size()) - 1;
    if (order->end()[-1] != last && order->end()[-2] != last) return false;
    return std::adjacent_find(order->begin(), order->end() - 2, [](auto one, auto next) {
               return one + 1 != next;
           }) == order->end() - 2;
}

// The input that other optimizers leave of this operator: a number goes into the product.
const abi::value_info* passed_on(const runtime& with, const abi::node* node) {
    if (is_operator(with, node, "Cast")) return input_of(with, node, 0);
    if (!is_operator(with, node, "Mul") && !is_operator(with, node, "Div")) return nullptr;
    const abi::value_info* const left = input_of(with, node, 0);
    const abi::value_info* const right = input_of(with, node, 1);
    return is_constant(with, right) ? left : is_constant(with, left) ? right : nullptr;
}

bool comes_by_cast_from_turned_batch(const runtime& with, const abi::value_info* value) {
    bool is_cast = is_f16(with, value); // products are computed in f32
    const abi::node* maker = maker_of(with, value);
    while (const abi::value_info* const input = passed_on(with, maker)) {
        is_cast |= is_operator(with, maker, "Cast") || is_f16(with, input);
        maker = maker_of(with, input);
    }
    return is_cast && is_operator(with, maker, "Transpose") && turns_batch(with, maker) &&
           !is_graph_output(with, output_of(with, maker));
}

bool is_broken_product(const runtime& with, const abi::node* node) {
    if (!is_operator(with, node, "MatMul") && !is_operator(with, node, "FusedMatMul")) return false;
    const abi::value_info* const left = input_of(with, node, 0);
    const abi::value_info* const right = input_of(with, node, 1);
    const auto left_facts = facts_of(with, left), right_facts = facts_of(with, right);
    if (left_facts.extents && right_facts.extents &&
        left_facts.extents->rank() == right_facts.extents->rank())
        return false; // it is fused
    return comes_by_cast_from_turned_batch(with, left) ||
           comes_by_cast_from_turned_batch(with, right);
}

std::vector<const abi::graph*> graphs_in(const runtime& with, const abi::node* node) {
    std::size_t count = 0;
    check(with.Node_GetNumSubgraphs(node, &count));
    std::vector<const abi::graph*> graphs(count);
    if (count != 0) check(with.Node_GetSubgraphs(node, graphs.data(), count, nullptr));
    return graphs;
}

} // namespace

bool breaks_transpose_fusion(const runtime& with, const abi::graph* graph) {
    return std::ranges::any_of(nodes_of(with, graph), [&](const abi::node* node) {
        return is_broken_product(with, node) ||
               std::ranges::any_of(graphs_in(with, node), [&](const abi::graph* inner) {
                   return breaks_transpose_fusion(with, inner);
               });
    });
}

} // namespace maskwise::ort
