#include "accelerate.hpp"

#include "block_claims.hpp"
#include "claims.hpp"
#include "fused.hpp"
#include "select.hpp"

#include <openvino/core/graph_util.hpp>
#include <openvino/core/rt_info.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

#include <algorithm>
#include <vector>

namespace maskwise::openvino {
namespace {

using select_1 = ov::op::v1::Select;

struct claims {
    std::vector<block_match> blocks;
    std::vector<std::shared_ptr<select_1>> selects;
};

bool may_end_attention(const ov::Node& node) {
    return ov::is_type<ov::op::v0::MatMul>(&node) ||
           ov::is_type<ov::op::v13::ScaledDotProductAttention>(&node);
}

template <class Filter>
void claim_blocks(const ov::NodeVector& nodes, const Filter& may_end,
                  const accelerate_options& options, std::vector<block_match>& blocks,
                  node_set& claimed) {
    for (const auto& node : nodes) {
        if (!may_end(*node) || claimed.contains(node.get())) continue;
        auto match = find_block(*node, claimed);
        if (!match) report_no_match(*node);
        if (!match || !is_claimed(*match, *node, options)) continue;
        claimed.insert(match->nodes.begin(), match->nodes.end());
        if (options.zero_masked_rows) match->block.rows.soft_max->inf_as_zero = true;
        blocks.push_back(std::move(*match));
    }
}

// Must run before any node is replaced, because claims depend on consumers.
void find_claims(const ov::NodeVector& nodes, const accelerate_options& options, claims& result) {
    node_set claimed;
    claim_blocks(nodes, may_end_attention, options, result.blocks, claimed);
    claim_blocks(nodes, is_softmax, options, result.blocks, claimed);
    for (const auto& node : nodes) {
        if (const auto* holder = ov::as_type<ov::op::util::MultiSubGraphOp>(node.get()))
            for (const auto& body : holder->get_functions())
                find_claims(body->get_ordered_ops(), options, result);
        const auto select = ov::as_type_ptr<select_1>(node);
        if (select != nullptr && !claimed.contains(node.get()) && is_claimed(*select, options))
            result.selects.push_back(select);
    }
}

void replace(const std::shared_ptr<ov::Node>& node, const std::shared_ptr<ov::Node>& replacement) {
    replacement->set_friendly_name(node->get_friendly_name());
    ov::copy_runtime_info(node, replacement);
    ov::replace_node(node, replacement);
}

// Whether f32 query, key and value may be converted to bf16. False for an odd or unknown depth,
// because kernels multiply bf16 in pairs. False for a model input of dynamic shape, which the
// plugin's conversion would truncate.
bool may_be_bf16(const block_match& match, const ov::OutputVector& inputs) {
    const auto& attention = match.block.attention;
    if (!attention || inputs[0].get_element_type() != ov::element::f32) return false;
    const ov::PartialShape& query = inputs[0].get_partial_shape();
    if (query.rank().is_dynamic()) return false;
    const ov::Dimension depth = *(query.begin() + attention->query.order.back());
    if (depth.is_dynamic() || depth.get_length() % 2 != 0) return false;
    return std::none_of(inputs.begin(), inputs.begin() + 3, [](const ov::Output<ov::Node>& input) {
        return input.get_partial_shape().is_dynamic() &&
               ov::is_type<ov::op::v0::Parameter>(input.get_node());
    });
}

void replace(const block_match& match, const accelerate_options& options) {
    ov::OutputVector inputs = match.inputs();
    const bool narrows = options.precision == ov::element::bf16 && may_be_bf16(match, inputs);
    for (std::size_t i = 0; narrows && i < 3; ++i)
        inputs[i] = std::make_shared<ov::op::v0::Convert>(inputs[i], ov::element::bf16);
    std::shared_ptr<ov::Node> node =
        std::make_shared<fused>(inputs, match.block, match.scales_by_depth);
    if (narrows) {
        node->set_friendly_name(match.last->get_friendly_name() + "/bf16");
        node = std::make_shared<ov::op::v0::Convert>(node, ov::element::f32);
    }
    replace(match.last, node);
}

} // namespace

void replace_claimed(const ov::NodeVector& nodes, const accelerate_options& options) {
    claims result;
    find_claims(nodes, options, result);
    for (const auto& node : result.selects)
        replace(node, std::make_shared<select>(node->input_values(), node->get_autob()));
    for (const block_match& block : result.blocks) replace(block, options);
}

inline namespace v1 {

std::shared_ptr<ov::Model> accelerate(const std::shared_ptr<const ov::Model>& model,
                                      accelerate_options options) {
    std::shared_ptr<ov::Model> copy = model->clone();
    replace_claimed(copy->get_ordered_ops(), options);
    return copy;
}

} // namespace v1
} // namespace maskwise::openvino
