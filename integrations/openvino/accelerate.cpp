#include "maskwise/openvino.hpp"

#include "claims.hpp"
#include "masked_softmax.hpp"
#include "select.hpp"
#include "softmax_chain.hpp"

#include <openvino/core/graph_util.hpp>
#include <openvino/core/rt_info.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

#include <set>
#include <utility>
#include <vector>

namespace maskwise::openvino {
namespace {

struct claims {
    std::vector<softmax_chain> chains;
    ov::NodeVector selects;
};

// Decides all before anything is replaced: what reads a Select tells.
void find_claims(const ov::Model& model, place in, const accelerate_options& options,
                 claims& found) {
    std::set<const ov::Node*> chained;
    for (const auto& node : model.get_ordered_ops())
        if (auto chain = find_softmax_chain(node)) {
            chained.insert(chain->select);
            found.chains.push_back(std::move(*chain));
        }
    for (const auto& node : model.get_ordered_ops()) {
        if (const auto* holder = ov::as_type<ov::op::util::MultiSubGraphOp>(node.get()))
            for (const auto& body : holder->get_functions())
                find_claims(*body, place::body, options, found);
        const auto* const select = ov::as_type<ov::op::v1::Select>(node.get());
        if (select == nullptr || chained.count(select) > 0) continue;
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
        replace(node, std::make_shared<select>(node->input_values(), node->get_autob()));
    for (const softmax_chain& chain : found.chains)
        replace(chain.softmax,
                std::make_shared<masked_softmax>(chain.inputs, chain.cond_keeps, chain.scaling));
    return !found.selects.empty() || !found.chains.empty();
}

} // namespace maskwise::openvino
