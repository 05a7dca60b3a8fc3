#include "maskwise/openvino.hpp"

#include "claims.hpp"
#include "select.hpp"

#include <openvino/core/graph_util.hpp>
#include <openvino/core/rt_info.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

namespace maskwise::openvino {
namespace {

void find_claimed(const ov::Model& model, place in, const accelerate_options& options,
                  ov::NodeVector& found) {
    for (const auto& node : model.get_ordered_ops()) {
        if (const auto* holder = ov::as_type<ov::op::util::MultiSubGraphOp>(node.get()))
            for (const auto& body : holder->get_functions())
                find_claimed(*body, place::body, options, found);
        const auto* const select = ov::as_type<ov::op::v1::Select>(node.get());
        if (select != nullptr && is_claimed(*select, options, in)) found.push_back(node);
    }
}

} // namespace

accelerate_select::accelerate_select(accelerate_options options) : options_(options) {}

bool accelerate_select::run_on_model(const std::shared_ptr<ov::Model>& model) {
    ov::NodeVector found;
    find_claimed(*model, place::model, options_, found);
    for (const auto& node : found) {
        const auto own = std::make_shared<select>(node->input_values(), node->get_autob());
        own->set_friendly_name(node->get_friendly_name());
        ov::copy_runtime_info(node, own);
        ov::replace_node(node, own);
    }
    return !found.empty();
}

} // namespace maskwise::openvino
