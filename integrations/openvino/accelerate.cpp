#include "maskwise/openvino.hpp"

#include "block_claims.hpp"
#include "claims.hpp"
#include "deferred.hpp"

#include <openvino/core/graph_util.hpp>
#include <openvino/core/rt_info.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

#include <memory>

namespace maskwise::openvino {
namespace {

struct claims {
    ov::NodeVector ends, selects;
};

bool may_end_attention(const ov::Node& node) {
    return ov::is_type<ov::op::v0::MatMul>(&node) ||
           ov::is_type<ov::op::v13::ScaledDotProductAttention>(&node);
}

// Of the ends that `may_end` tells, those in front of which a block is claimed; its nodes are
// joined.
template <class Filter>
void claim_ends(const ov::NodeVector& nodes, const Filter& may_end,
                const accelerate_options& options, ov::NodeVector& ends, node_set& joined) {
    for (const auto& node : nodes) {
        if (!may_end(*node) || joined.contains(node.get())) continue;
        const auto found = find_block(*node);
        if (!found) report_none(*node);
        if (!found || !is_claimed(*found, *node, options)) continue;
        joined.insert(found->nodes.begin(), found->nodes.end());
        ends.push_back(node);
    }
}

// Decides all before anything is replaced: what reads a Select tells.
void find_claims(const ov::Model& model, place in, const accelerate_options& options,
                 claims& found) {
    const ov::NodeVector nodes = model.get_ordered_ops();
    node_set joined;
    claim_ends(nodes, may_end_attention, options, found.ends, joined);
    claim_ends(nodes, is_softmax, options, found.ends, joined);
    for (const auto& node : nodes) {
        if (const auto* holder = ov::as_type<ov::op::util::MultiSubGraphOp>(node.get()))
            for (const auto& body : holder->get_functions())
                find_claims(*body, place::body, options, found);
        const auto* const select = ov::as_type<ov::op::v1::Select>(node.get());
        if (select == nullptr || joined.contains(select)) continue;
        if (is_claimed(*select, options, in)) found.selects.push_back(node);
    }
}

void replace(const std::shared_ptr<ov::Node>& node, const std::shared_ptr<ov::Node>& by) {
    by->set_friendly_name(node->get_friendly_name());
    ov::copy_runtime_info(node, by);
    ov::replace_node(node, by);
}

} // namespace

accelerate_select::accelerate_select(accelerate_options options) : options_(options) {}

bool accelerate_select::run_on_model(const std::shared_ptr<ov::Model>& model) {
    claims found;
    find_claims(*model, place::model, options_, found);
    for (const auto& node : found.selects)
        replace(node,
                std::make_shared<deferred_select>(node->input_values(), node->get_autob(), true));
    for (const auto& node : found.ends)
        replace(node, defer_end(*node, node->input_values(), {true, node}));
    return !found.selects.empty() || !found.ends.empty();
}

} // namespace maskwise::openvino
