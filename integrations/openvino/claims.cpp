#include "claims.hpp"

#include "element_types.hpp"

#include "base/verbose.hpp"
#include "fusion/gains.hpp"

#include <openvino/op/broadcast.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/gather.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/reshape.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/slice.hpp>
#include <openvino/op/squeeze.hpp>
#include <openvino/op/strided_slice.hpp>
#include <openvino/op/tile.hpp>
#include <openvino/op/unsqueeze.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

#include <algorithm>

namespace maskwise::openvino {
namespace {

namespace op = ov::op;

// A condition that is smaller than the result by this factor costs next to nothing.
constexpr std::size_t small_cond_factor = 8;

template <class... operators>
bool is_one_of(const ov::Node& node) {
    return (ov::is_type<operators>(&node) || ...);
}

// Whether the node is a reshape or a broadcast. The plugin may fuse the node's producer with the
// node's consumer.
bool is_view(const ov::Node& node) {
    return is_one_of<op::v1::Reshape, op::v0::Squeeze, op::v15::Squeeze, op::v0::Unsqueeze,
                     op::util::BroadcastBase>(node);
}

// The CPU plugin never fuses a Select with these nodes. It may fuse a Select with element-wise,
// MatMul and Softmax nodes, and assigns blocked layouts to others.
bool is_never_fused(const ov::Node& node) {
    return is_one_of<op::v0::Parameter, op::v0::Constant, op::v0::Result, op::util::GatherBase,
                     op::v8::Slice, op::v1::StridedSlice, op::v0::Tile, op::util::MultiSubGraphOp>(
        node);
}

} // namespace

const ov::Node* fused_producer(const ov::Node& node) {
    if (is_never_fused(node)) return nullptr;
    return is_view(node) ? fused_producer(*node.get_input_node_ptr(0)) : &node;
}

const ov::Node* fused_consumer(const ov::Node& node) {
    for (const auto& input : node.output(0).get_target_inputs()) {
        const ov::Node& reader = *input.get_node();
        if (is_never_fused(reader)) continue;
        // Follows only the data input, because a view may read one value twice.
        const bool is_followed = is_view(reader) && input.get_index() == 0;
        const ov::Node* const consumer = is_followed ? fused_consumer(reader) : &reader;
        if (consumer != nullptr) return consumer;
    }
    return nullptr;
}

bool is_small_cond(std::size_t elements, std::size_t dst_elements) {
    return elements <= dst_elements / small_cond_factor;
}

namespace {

std::size_t elements_of(const ov::PartialShape& shape) {
    return ov::shape_size(shape.to_shape());
}

std::string reason_fused_with_neighbor(const op::v1::Select& select) {
    const ov::Node* neighbor = fused_consumer(select);
    for (const std::size_t input : {2U, 1U, 0U}) {
        const bool is_free =
            input == 0 && is_small_cond(elements_of(select.get_input_partial_shape(0)),
                                        elements_of(select.get_output_partial_shape(0)));
        const ov::Node* const producer = fused_producer(*select.get_input_node_ptr(input));
        if (producer != nullptr && !is_free) neighbor = producer;
    }
    return neighbor == nullptr ? ""
                               : std::string("OpenVINO fuses it with ") + neighbor->get_type_name();
}

bool saves_a_copy_of_cond(const op::v1::Select& select, std::size_t dst_elements) {
    const std::size_t elements = elements_of(select.get_input_partial_shape(0));
    return is_one_of<op::v0::Parameter>(*select.get_input_node_ptr(0)) &&
           fusion::gains::openvino_boolean_input.holds(elements) &&
           fusion::gains::openvino_broadcast_input.holds(dst_elements /
                                                         std::max<std::size_t>(1, elements));
}

// Returns why Maskwise's Select is not faster than OpenVINO's, or an empty text.
std::string reason_not_faster(const op::v1::Select& select) {
    const ov::element::Type type = select.get_output_element_type(0);
    if (pair_of(type).is_converted) return "the CPU plugin converts " + type.get_type_name();
    const ov::PartialShape& dst = select.get_output_partial_shape(0);
    if (dst.is_dynamic() || select.get_input_partial_shape(0).is_dynamic())
        return "its size is not known";
    const std::size_t elements = elements_of(dst);
    if (!fusion::gains::openvino_select.holds(elements * type.size()) &&
        !saves_a_copy_of_cond(select, elements))
        return "it is small";
    return reason_fused_with_neighbor(select);
}

// Returns why Maskwise cannot run a Select, or an empty text.
std::string reason_unsupported(const op::v1::Select& select) {
    const ov::element::Type type = select.get_output_element_type(0);
    if (select.get_autob().m_type == op::AutoBroadcastType::PDPD) return "auto_broadcast is pdpd";
    if (type_of(type) == data_type::undef) return "Maskwise does not support its type";
    // The plugin cannot compile some operators on empty tensors, unless it fuses these operators
    // with its own Select.
    const ov::PartialShape& dst = select.get_output_partial_shape(0);
    const bool is_empty =
        dst.rank().is_static() && std::find(dst.begin(), dst.end(), 0) != dst.end();
    return is_empty ? "it has no elements" : "";
}

} // namespace

bool is_claimed(const op::v1::Select& select, const accelerate_options& options) {
    std::string reason = reason_unsupported(select);
    if (reason.empty() && !options.force) reason = reason_not_faster(select);
    if (verbose_level() > 0)
        print_decision(select.get_friendly_name(),
                       "Select-1 " + select.get_output_element_type(0).get_type_name(), reason);
    return reason.empty();
}

} // namespace maskwise::openvino
