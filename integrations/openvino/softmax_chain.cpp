#include "softmax_chain.hpp"

#include "claims.hpp"

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
void read_scaling(const ov::Output<ov::Node>& scores, softmax_chain& chain) {
    const ov::Node& node = *scores.get_node();
    const bool is_product = ov::is_type<op::v1::Multiply>(&node);
    if (!has_one_reader(scores) || !(is_product || ov::is_type<op::v1::Divide>(&node))) return;
    for (const std::size_t side : {1U, 0U}) {
        if (!is_one_number(node.input_value(side)) || !(is_product || side == 1) ||
            node.get_input_partial_shape(1 - side) != scores.get_partial_shape())
            continue;
        chain.factor = side;
        chain.scaling = is_product ? "multiply" : "divide";
        return;
    }
}

std::optional<softmax_chain> read_chain(const ov::Node& softmax) {
    const ov::Output<ov::Node> value = softmax.input_value(0);
    const auto* select = ov::as_type<op::v1::Select>(value.get_node());
    if (select == nullptr || !has_one_reader(value)) return std::nullopt;
    if (select->get_autob().m_type == op::AutoBroadcastType::PDPD) return std::nullopt;
    for (const std::size_t side : {2U, 1U}) {
        const ov::Output<ov::Node> scores = select->input_value(3 - side);
        if (!is_one_number(select->input_value(side)) ||
            scores.get_partial_shape() != value.get_partial_shape())
            continue;
        softmax_chain chain{select, side == 2};
        read_scaling(scores, chain);
        return chain;
    }
    return std::nullopt;
}

bool is_faster(const softmax_chain& chain, const ov::Node& softmax) {
    const ov::OutputVector inputs = chain.inputs_of(*chain.select);
    const ov::Output<ov::Node>&cond = inputs[0], &scores = inputs[1];
    if (scores.get_element_type() != ov::element::f32 || scores.get_partial_shape().is_dynamic() ||
        cond.get_partial_shape().is_dynamic())
        return false;
    const std::size_t elements = ov::shape_size(scores.get_shape());
    return elements * sizeof(float) >= least_bytes &&
           joined_producer(*scores.get_node()) == nullptr && joined_reader(softmax) == nullptr &&
           (is_small_cond(ov::shape_size(cond.get_shape()), elements) ||
            joined_producer(*cond.get_node()) == nullptr);
}

} // namespace

ov::OutputVector softmax_chain::inputs_of(const ov::Node& masked) const {
    const std::size_t scores = cond_keeps ? 1 : 2;
    ov::OutputVector inputs{masked.input_value(0), masked.input_value(scores),
                            masked.input_value(3 - scores)};
    if (scaling == "none") return inputs;
    const ov::Node& scaled = *inputs[1].get_node();
    inputs[1] = scaled.input_value(1 - factor);
    inputs.push_back(scaled.input_value(factor));
    return inputs;
}

std::optional<softmax_chain> find_softmax_chain(const ov::Node& softmax) {
    if (!is_last_dimension(softmax)) return std::nullopt;
    auto chain = read_chain(softmax);
    if (chain && !is_faster(*chain, softmax)) chain.reset();
    return chain;
}

} // namespace maskwise::openvino
