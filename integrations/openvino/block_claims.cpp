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
#include <string>
#include <variant>

namespace maskwise::openvino {
namespace {

namespace op = ov::op;

constexpr const char* fused_with_cache = "OpenVINO fuses the attention with the cache";

bool is_empty(const ov::PartialShape& shape) {
    return shape.rank().is_static() && std::ranges::find(shape, ov::Dimension(0)) != shape.end();
}

// Returns why Maskwise is not faster than OpenVINO at this Softmax with its neighbors, or an empty
// text.
std::string reason_rows_not_faster(const block_match& match, const ov::Node& softmax) {
    const ov::OutputVector inputs = match.inputs();
    if (softmax.get_output_partial_shape(0).is_dynamic()) return "its size is not known";
    const std::size_t elements = ov::shape_size(softmax.get_output_shape(0));
    if (!fusion::gains::openvino_rows.holds(elements * sizeof(float))) return "it is small";
    const ov::Node* neighbor = fused_consumer(softmax);
    for (const auto& input : inputs) {
        const bool is_free = input != inputs[0] && input.get_partial_shape().is_static() &&
                             is_small_cond(ov::shape_size(input.get_shape()), elements);
        const ov::Node* const producer = fused_producer(*input.get_node());
        if (producer != nullptr && !is_free) neighbor = producer;
    }
    return neighbor == nullptr ? ""
                               : std::string("OpenVINO fuses it with ") + neighbor->get_type_name();
}

// Whether the node is a ReadValue of a state, or reads one through at most `max_depth` nodes.
// OpenVINO fuses attention with the state's cache.
bool reads_state(const ov::Node& node, int max_depth) {
    if (ov::is_type<op::util::ReadValueBase>(&node)) return true;
    if (max_depth == 0) return false;
    const std::size_t inputs = ov::is_type<op::v0::Concat>(&node)
                                   ? node.get_input_size()
                                   : std::min<std::size_t>(node.get_input_size(), 1);
    for (std::size_t i = 0; i < inputs; ++i)
        if (reads_state(*node.get_input_node_ptr(i), max_depth - 1)) return true;
    return false;
}

// Returns the number of scores per head; unknown_size if the rows or the keys are dynamic.
std::int64_t scores_of(const fusion::attention_chain& attention, const ov::OutputVector& inputs) {
    const auto rows_of = [](const ov::Output<ov::Node>& input, const std::vector<int>& order) {
        const ov::PartialShape& shape = input.get_partial_shape();
        return shape.rank().is_static() ? *(shape.begin() + order.end()[-2]) : ov::Dimension();
    };
    const ov::Dimension rows = rows_of(inputs[0], attention.query.order);
    const ov::Dimension keys = rows_of(inputs[1], attention.key.order);
    if (rows.is_dynamic() || keys.is_dynamic()) return fusion::gains::unknown_size;
    return rows.get_length() * keys.get_length();
}

bool reads_state(const ov::OutputVector& inputs) {
    constexpr int max_depth = 10; // enough for Concat, Gather, repeated heads and permutations
    return reads_state(*inputs[1].get_node(), max_depth) ||
           reads_state(*inputs[2].get_node(), max_depth);
}

// Whether the bias differs by head and by row. Reading such a bias takes as long as OpenVINO's
// attention.
bool has_bias_by_head(const block_match& match, const ov::OutputVector& inputs) {
    constexpr std::size_t matrices = 3, heads_from_end = 3;
    return std::ranges::any_of(match.block.rows.steps, [&](const row_step& step) {
        const auto* const with = std::get_if<row_combine>(&step);
        if (with == nullptr || with->op != row_operator::add) return false;
        const ov::PartialShape& bias = inputs[matrices + with->side].get_partial_shape();
        return bias.rank().is_static() && bias.size() >= heads_from_end && bias.rbegin()[1] != 1 &&
               bias.rbegin()[2].is_static() && bias.rbegin()[2] != 1;
    });
}

// Unless the options state the precision, the plugin may compute in bf16. Maskwise's attention in
// f32 is then slower, unless a causal mask removes half of the scores.
bool may_be_slower_than_bf16(const block_match& match, const accelerate_options& options) {
    return options.precision == ov::element::dynamic &&
           std::ranges::none_of(match.block.rows.steps, is_causal) &&
           match.last->get_output_element_type(0) != ov::element::bf16 &&
           has_bf16_products(native_cpu());
}

std::string reason_attention_not_faster(const block_match& match,
                                        const accelerate_options& options) {
    const ov::OutputVector inputs = match.inputs();
    if (reads_state(inputs)) return fused_with_cache;
    if (has_bias_by_head(match, inputs)) return "each head has its own bias";
    if (!fusion::gains::openvino_attention.holds(scores_of(*match.block.attention, inputs)))
        return "it is small";
    return may_be_slower_than_bf16(match, options) ? "OpenVINO may compute in bf16" : "";
}

// Returns why Maskwise cannot run a block, or an empty text. In OpenVINO, a cache in a state shifts
// the causal boundary. A block cannot express this shift.
std::string reason_unsupported(const block_match& match, const ov::Node& end) {
    if (is_empty(end.get_output_partial_shape(0))) return "it has no elements";
    const auto* whole = ov::as_type<const op::v13::ScaledDotProductAttention>(&end);
    const bool is_causal = whole != nullptr && whole->get_causal();
    return is_causal && reads_state(match.inputs()) ? fused_with_cache : "";
}

std::string reason_against(const block_match& match, const ov::Node& end,
                           const accelerate_options& options) {
    std::string why = reason_unsupported(match, end);
    if (!why.empty() || options.force || options.zero_masked_rows) return why;
    return match.block.attention ? reason_attention_not_faster(match, options)
                                 : reason_rows_not_faster(match, end);
}

} // namespace

bool is_claimed(const block_match& match, const ov::Node& end, const accelerate_options& options) {
    const std::string reason = reason_against(match, end, options);
    if (verbose_level() > 0) print_decision(end.get_friendly_name(), match.text(), reason);
    return reason.empty();
}

void report_no_match(const ov::Node& end) {
    if (verbose_level() == 0 || ov::is_type<op::v0::MatMul>(&end)) return;
    print_decision(end.get_friendly_name(),
                   std::string(end.get_type_name()) + ' ' +
                       end.get_output_element_type(0).get_type_name(),
                   "no mask or attention pattern that Maskwise supports");
}

} // namespace maskwise::openvino
