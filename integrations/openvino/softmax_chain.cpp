#include "softmax_chain.hpp"

#include "claims.hpp"

#include "base/verbose.hpp"

#include <openvino/op/divide.hpp>
#include <openvino/op/multiply.hpp>
#include <openvino/op/softmax.hpp>

namespace maskwise::openvino {
namespace {

namespace op = ov::op;

// From so many bytes of scores on the call itself no longer tells.
constexpr std::size_t least_bytes = std::size_t{1} << 18;

bool is_last_dimension(const ov::Node& softmax) {
    const ov::Rank rank = softmax.get_output_partial_shape(0).rank();
    if (rank.is_dynamic() || rank.get_length() == 0) return false;
    const std::int64_t last = rank.get_length() - 1;
    if (const auto* v1 = ov::as_type<const op::v1::Softmax>(&softmax))
        return static_cast<std::int64_t>(v1->get_axis()) == last;
    const auto* v8 = ov::as_type<const op::v8::Softmax>(&softmax);
    return v8 != nullptr && (v8->get_axis() == last || v8->get_axis() == -1);
}

bool is_one_number(const ov::Output<ov::Node>& value) {
    return value.get_partial_shape().is_static() && ov::shape_size(value.get_shape()) == 1;
}

bool has_one_reader(const ov::Output<ov::Node>& value) {
    return value.get_target_inputs().size() == 1;
}

// Scores times, or divided by, one number: then the chain begins in front of that.
void read_scaling(softmax_chain& chain) {
    ov::Output<ov::Node>& scores = chain.inputs[1];
    const ov::Node& node = *scores.get_node();
    const bool is_product = ov::is_type<op::v1::Multiply>(&node);
    if (!has_one_reader(scores) || !(is_product || ov::is_type<op::v1::Divide>(&node))) return;
    for (const std::size_t side : {1U, 0U}) {
        const ov::Output<ov::Node> factor = node.input_value(side),
                                   rest = node.input_value(1 - side);
        if (!is_one_number(factor) || rest.get_partial_shape() != scores.get_partial_shape() ||
            !(is_product || side == 1))
            continue;
        scores = rest;
        chain.inputs.push_back(factor);
        chain.scaling = is_product ? "multiply" : "divide";
        return;
    }
}

std::optional<softmax_chain> read_chain(const std::shared_ptr<ov::Node>& softmax) {
    const ov::Output<ov::Node> value = softmax->input_value(0);
    const auto* select = ov::as_type<op::v1::Select>(value.get_node());
    if (select == nullptr || !has_one_reader(value)) return std::nullopt;
    if (select->get_autob().m_type == op::AutoBroadcastType::PDPD) return std::nullopt;
    for (const std::size_t side : {2U, 1U}) {
        const ov::Output<ov::Node> fill = select->input_value(side),
                                   scores = select->input_value(3 - side);
        if (!is_one_number(fill) || scores.get_partial_shape() != value.get_partial_shape())
            continue;
        softmax_chain chain{softmax, select, {select->input_value(0), scores, fill}, side == 2};
        read_scaling(chain);
        return chain;
    }
    return std::nullopt;
}

bool is_faster(const softmax_chain& chain) {
    const ov::Output<ov::Node>&cond = chain.inputs[0], &scores = chain.inputs[1];
    if (scores.get_element_type() != ov::element::f32 || scores.get_partial_shape().is_dynamic() ||
        cond.get_partial_shape().is_dynamic())
        return false;
    const std::size_t elements = ov::shape_size(scores.get_shape());
    return elements >= least_bytes / sizeof(float) &&
           joined_producer(*scores.get_node()) == nullptr &&
           joined_reader(*chain.softmax) == nullptr &&
           (is_small_cond(ov::shape_size(cond.get_shape()), elements) ||
            joined_producer(*cond.get_node()) == nullptr);
}

} // namespace

std::optional<softmax_chain> find_softmax_chain(const std::shared_ptr<ov::Node>& softmax) {
    if (!is_last_dimension(*softmax)) return std::nullopt;
    auto chain = read_chain(softmax);
    if (!chain || !is_faster(*chain)) return std::nullopt;
    if (verbose_level() > 0)
        print_verbose("claim," + softmax->get_friendly_name() + ",Softmax f32 with its Select");
    return chain;
}

} // namespace maskwise::openvino
