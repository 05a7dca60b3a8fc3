#include "maskwise/openvino.hpp"

#include "claims.hpp"
#include "deferred.hpp"
#include "softmax_chain.hpp"

#include "base/verbose.hpp"

#include <openvino/core/graph_util.hpp>
#include <openvino/core/rt_info.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

#include <memory>
#include <set>

namespace maskwise::openvino {
namespace {

struct claims {
    ov::NodeVector softmaxes, selects;
};

// Decides all before anything is replaced: what reads a Select tells.
void find_claims(const ov::Model& model, place in, const accelerate_options& options,
                 claims& found) {
    std::set<const ov::Node*> chained;
    for (const auto& node : model.get_ordered_ops())
        if (const auto chain = find_softmax_chain(*node, options.force)) {
            chained.insert(chain->nodes.begin(), chain->nodes.end());
            found.softmaxes.push_back(node);
            if (verbose_level() > 0)
                print_decision(node->get_friendly_name(), "Softmax f32 with its Select", "");
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
        replace(node,
                std::make_shared<deferred_select>(node->input_values(), node->get_autob(), true));
    for (const auto& node : found.softmaxes) replace(node, defer_softmax(*node, options_.force));
    return !found.selects.empty() || !found.softmaxes.empty();
}

} // namespace maskwise::openvino
