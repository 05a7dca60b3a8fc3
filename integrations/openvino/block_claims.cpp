#include "block_claims.hpp"

#include "claims.hpp"

#include "base/cpu.hpp"
#include "base/verbose.hpp"
#include "fusion/gains.hpp"

#include <openvino/op/concat.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/read_value.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace maskwise::openvino {
namespace {

namespace op = ov::op;

constexpr const char* joins_cache = "OpenVINO joins it with its cache";

bool is_empty(const ov::PartialShape& shape) {
    return shape.rank().is_static() && std::ranges::find(shape, ov::Dimension(0)) != shape.end();
}

// Why OpenVINO's loop around a Softmax is as fast, or faster.
std::string reason_of_rows(const found_block& found, const ov::Node& softmax) {
    const ov::OutputVector inputs = found.inputs();
    if (softmax.get_output_partial_shape(0).is_dynamic()) return "its size is not known";
    const std::size_t elements = ov::shape_size(softmax.get_output_shape(0));
    if (!fusion::gains::openvino_rows.holds(elements * sizeof(float))) return "it is small";
    const ov::Node* joined = joined_reader(softmax);
    for (const auto& input : inputs) {
        const bool is_free = input != inputs[0] && input.get_partial_shape().is_static() &&
                             is_small_cond(ov::shape_size(input.get_shape()), elements);
        const ov::Node* const producer = joined_producer(*input.get_node());
        if (producer != nullptr && !is_free) joined = producer;
    }
    return joined == nullptr ? ""
                             : std::string("OpenVINO joins it with ") + joined->get_type_name();
}

// Whether a value comes from a state: OpenVINO fuses such attention with its cache.
bool reads_state(const ov::Node& node, int most_steps) {
    if (ov::is_type<op::util::ReadValueBase>(&node)) return true;
    if (most_steps == 0) return false;
    const std::size_t inputs = ov::is_type<op::v0::Concat>(&node)
                                   ? node.get_input_size()
                                   : std::min<std::size_t>(node.get_input_size(), 1);
    for (std::size_t i = 0; i < inputs; ++i)
        if (reads_state(*node.get_input_node_ptr(i), most_steps - 1)) return true;
    return false;
}

// Rows of query times keys; nothing where one is open.
std::optional<std::int64_t> scores_of(const fusion::attention_chain& attention,
                                      const ov::OutputVector& inputs) {
    const auto rows_of = [](const ov::Output<ov::Node>& input, const std::vector<int>& order) {
        const ov::PartialShape& shape = input.get_partial_shape();
        return shape.rank().is_static() ? *(shape.begin() + order.end()[-2]) : ov::Dimension();
    };
    const ov::Dimension rows = rows_of(inputs[0], attention.query.order);
    const ov::Dimension keys = rows_of(inputs[1], attention.key.order);
    if (rows.is_dynamic() || keys.is_dynamic()) return std::nullopt;
    return rows.get_length() * keys.get_length();
}

bool reads_state(const ov::OutputVector& inputs) {
    constexpr int most_steps = 10; // Concat, Gather, what repeats heads and turns dimensions
    return reads_state(*inputs[1].get_node(), most_steps) ||
           reads_state(*inputs[2].get_node(), most_steps);
}

// A bias of its own for each head: reading it costs as much as OpenVINO's whole loop.
bool has_bias_by_head(const found_block& found, const ov::OutputVector& inputs) {
    constexpr std::size_t matrices = 3, heads_from_end = 3;
    return std::ranges::any_of(found.block.rows.steps, [&](const row_step& step) {
        const auto* const with = std::get_if<row_combine>(&step);
        if (with == nullptr || with->op != row_operator::add) return false;
        const ov::PartialShape& bias = inputs[matrices + with->side].get_partial_shape();
        return bias.rank().is_static() && bias.size() >= heads_from_end && bias.rbegin()[1] != 1 &&
               bias.rbegin()[2].is_static() && bias.rbegin()[2] != 1;
    });
}

// Where the plugin computes in bf16, attention in f32 is slower unless half of it is left out.
bool may_be_slower_than_bf16(const found_block& found, const accelerate_options& options) {
    return options.precision == ov::element::dynamic && !is_causal(found.block.rows.steps) &&
           found.last->get_output_element_type(0) != ov::element::bf16 &&
           has_bf16_products(native_cpu());
}

std::string reason_of_attention(const found_block& found, const accelerate_options& options) {
    const fusion::gain& gain = fusion::gains::openvino_attention;
    const ov::OutputVector inputs = found.inputs();
    if (reads_state(inputs)) return joins_cache;
    if (has_bias_by_head(found, inputs)) return "each head has a bias of its own";
    if (!gain.holds(scores_of(*found.block.attention, inputs).value_or(gain.least)))
        return "it is small";
    if (may_be_slower_than_bf16(found, options)) return "OpenVINO may compute in bf16";
    return has_matrix_products(native_cpu()) ? "not measured on a CPU with AMX" : "";
}

// Why Maskwise cannot run a block at all; empty where it can. With a cache in states OpenVINO has
// another causal boundary.
std::string reason_of_form(const found_block& found, const ov::Node& end) {
    if (is_empty(end.get_output_partial_shape(0))) return "it has no elements";
    const auto* whole = ov::as_type<const op::v13::ScaledDotProductAttention>(&end);
    const bool is_causal = whole != nullptr && whole->get_causal();
    return is_causal && reads_state(found.inputs()) ? joins_cache : "";
}

std::string reason_against(const found_block& found, const ov::Node& end,
                           const accelerate_options& options) {
    std::string why = reason_of_form(found, end);
    if (!why.empty() || options.force || options.zero_masked_rows) return why;
    return found.block.attention ? reason_of_attention(found, options) : reason_of_rows(found, end);
}

} // namespace

bool is_claimed(const found_block& found, const ov::Node& end, const accelerate_options& options) {
    const std::string reason = reason_against(found, end, options);
    if (verbose_level() > 0) print_decision(end.get_friendly_name(), found.text(), reason);
    return reason.empty();
}

void report_none(const ov::Node& end) {
    if (verbose_level() == 0 || ov::is_type<op::v0::MatMul>(&end)) return;
    print_decision(end.get_friendly_name(),
                   std::string(end.get_type_name()) + ' ' +
                       end.get_output_element_type(0).get_type_name(),
                   "no mask or attention of a form that Maskwise has");
}

} // namespace maskwise::openvino
