#include "attention_checks.hpp"
#include "claims.hpp"

#include "fusion/gains.hpp"

#include <algorithm>
#include <cmath>

namespace maskwise::ort {
namespace {

std::string with_number(std::string_view name, auto number) {
    return std::string(name) + " of " + std::to_string(number) + " is not supported";
}

// ONNX Runtime stores integer attributes in 32 bits, and refuses or truncates larger numbers.
std::string reason_against_integers(const node& node) {
    for (const auto& [name, number] : node.integers())
        if (number != static_cast<std::int32_t>(number)) return with_number(name, number);
    return "";
}

std::string reason_against_numbers(const attention_operator& op,
                                   const attention_settings& settings) {
    // ONNX Runtime's kernel for ONNX's Attention fails if the scale is 0 or less.
    const bool is_onnx = op.kind == attention_kind::onnx;
    if (settings.scale && (!std::isfinite(*settings.scale) || (is_onnx && *settings.scale <= 0)))
        return with_number("scale", *settings.scale);
    if (std::isinf(settings.soft_cap)) return with_number("softcap", settings.soft_cap);
    return settings.masked <= 0 ? "" : with_number("mask_filter_value", settings.masked);
}

// Returns the first unsupported attribute; empty if all are supported.
std::string reason_against_attributes(const attention_operator& op, const node& node) {
    if (op.kind != attention_kind::group_query) return "";
    if (const auto rotates = node.integer("do_rotary", 0); rotates != 0 && rotates != 1)
        return with_number("do_rotary", rotates);
    if (const auto window = node.integer("local_window_size", -1); window < -1 || window == 0)
        return with_number("local_window_size", window);
    if (node.integer("smooth_softmax", 0) == 1) return "smooth_softmax";
    if (node.integer("causal", 1) != 1) return "not causal";
    if (node.integer("qk_output", 0) != 0) return "the scores are an output";
    if (node.integer("kv_cache_bit_width", 0) != 0) return "the cache holds integers";
    return node.integer("sliding_window_cache", 0) != 0 ? "sliding_window_cache" : "";
}

std::string reason_against_old(const attention_operator& op, const runtime& api,
                               const attention_settings& settings, const attention_inputs& inputs) {
    if (op.kind != attention_kind::onnx || !masks_by_lowest(api)) return "";
    if (settings.soft_cap > 0 && (inputs[role::mask].is_given || settings.is_causal))
        return "softcap after a mask before ONNX Runtime 1.28";
    if (inputs[role::lengths].is_given) return "nonpad_kv_seqlen before ONNX Runtime 1.28";
    // ONNX Runtime's f16 kernel mixes up heads if the operands have three dimensions.
    return inputs[role::query].type == data_type::f16 ? "f16 before ONNX Runtime 1.28" : "";
}

std::string reason_against_depth(const attention_shape& shape, bool is_masked) {
    const std::int64_t depth = std::max(shape.query[3], shape.value[3]);
    if (fusion::gains::onnxruntime_attention_with(is_masked).holds(depth)) return "";
    return (depth < 0 ? "an unknown depth" : "a depth of " + std::to_string(depth)) +
           (is_masked ? "" : " without a mask") + ", so ONNX Runtime may be faster";
}

// Runs the checks of a call on the types and shapes that the model states.
std::string reason_by_checks(const attention_operator& op, const node& node,
                             const attention_settings& settings) {
    try {
        const attention_inputs inputs(op, node);
        const attention_shape shape = check_operands(*node.api, op, inputs, settings);
        const bool is_masked = settings.is_causal || inputs[role::mask].is_given ||
                               inputs[role::bias].is_given || inputs[role::lengths].is_given;
        if (auto why = reason_against_old(op, *node.api, settings, inputs); !why.empty())
            return why;
        return reason_against_depth(shape, is_masked);
    } catch (const error& refused) {
        return std::string(refused.what()).substr(error_prefix.size());
    }
}

} // namespace

bool is_attention(const node& node) {
    return node.type.find("Attention") != std::string_view::npos;
}

std::string reason_to_refuse_attention(const node& node, rounding& exactness) {
    const attention_operator& op = *operator_of(node);
    const attention_settings settings = settings_of(op, node);
    const struct node* const nodes[] = {&node};
    if (!node.result().is_given()) return "no result";
    if (node.has_too_many_dims()) return "more than " + std::to_string(max_rank) + " dimensions";
    for (std::string why :
         {reason_against_integers(node), reason_against_numbers(op, settings),
          reason_against_attributes(op, node), reason_by_checks(op, node, settings)})
        if (!why.empty()) return why;
    if (!exactness.is_exact_for(nodes) || is_inverted(node.result())) return rounds_differently;
    return "";
}

} // namespace maskwise::ort
