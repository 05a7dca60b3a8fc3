#include "attention_checks.hpp"
#include "claims.hpp"

#include "fusion/gains.hpp"

#include <algorithm>
#include <cmath>

namespace maskwise::ort {
namespace {

std::string with_number(std::string_view name, auto number) {
    return std::string(name) + " of " + std::to_string(number);
}

// ONNX Runtime keeps integers in 32 bits: it refuses others, or takes their low bits.
std::string reason_against_integers(const node& of) {
    for (const auto& [name, number] : of.integers())
        if (number != static_cast<std::int32_t>(number)) return with_number(name, number);
    return "";
}

std::string reason_against_numbers(const attention_operator& of,
                                   const attention_settings& settings) {
    const bool is_onnx = of.kind == attention_kind::onnx; // which runs no scale of 0 or less
    if (settings.scale && (!std::isfinite(*settings.scale) || (is_onnx && *settings.scale <= 0)))
        return with_number("scale", *settings.scale);
    if (std::isinf(settings.soft_cap)) return with_number("softcap", settings.soft_cap);
    return settings.masked <= 0 ? "" : with_number("mask_filter_value", settings.masked);
}

// Values of attributes that the kernels here do not know.
std::string reason_against_attributes(const attention_operator& of, const node& from) {
    if (of.kind != attention_kind::group_query) return "";
    if (const auto rotates = from.integer("do_rotary", 0); rotates != 0 && rotates != 1)
        return with_number("do_rotary", rotates);
    if (const auto window = from.integer("local_window_size", -1); window < -1 || window == 0)
        return with_number("local_window_size", window);
    if (from.integer("smooth_softmax", 0) == 1) return "smooth_softmax";
    if (from.integer("causal", 1) != 1) return "not causal";
    if (from.integer("qk_output", 0) != 0) return "the scores are an output";
    if (from.integer("kv_cache_bit_width", 0) != 0) return "a cache of whole numbers";
    return from.integer("sliding_window_cache", 0) != 0 ? "sliding_window_cache" : "";
}

std::string reason_against_old(const attention_operator& of, const runtime& with,
                               const attention_settings& settings, const attention_inputs& in) {
    if (of.kind != attention_kind::onnx || !masks_by_lowest(with)) return "";
    if (settings.soft_cap > 0 && (in[role::mask].is_given || settings.is_causal))
        return "softcap after a mask before ONNX Runtime 1.28";
    if (in[role::lengths].is_given) return "nonpad_kv_seqlen before ONNX Runtime 1.28";
    // Its own kernel mistakes the heads of three dimensions for each other.
    return in[role::query].type == data_type::f16 ? "f16 before ONNX Runtime 1.28" : "";
}

std::string reason_against_depth(const attention_shape& shape, bool is_masked) {
    const std::int64_t depth = std::max(shape.query[3], shape.value[3]);
    if (is_masked)
        return depth < 0 || fusion::gains::onnxruntime_masked_attention.holds(depth)
                   ? ""
                   : with_number("a depth", depth);
    if (depth < 0) return "nothing masks, and the depth is not known";
    return fusion::gains::onnxruntime_attention.holds(depth)
               ? ""
               : "nothing masks, at " + with_number("a depth", depth);
}

// The checks of calls, with what the model states.
std::string reason_by_checks(const attention_operator& of, const node& from,
                             const attention_settings& settings) {
    try {
        const attention_inputs in(of, from);
        const attention_shape shape = check_operands(*from.with, of, in, settings);
        const bool is_masked = settings.is_causal || in[role::mask].is_given ||
                               in[role::bias].is_given || in[role::lengths].is_given;
        if (auto why = reason_against_old(of, *from.with, settings, in); !why.empty()) return why;
        return reason_against_depth(shape, is_masked);
    } catch (const error& refused) {
        return std::string(refused.what()).substr(error_prefix.size());
    }
}

} // namespace

bool is_attention(const node& of) {
    return of.type.find("Attention") != std::string_view::npos;
}

std::string reason_to_refuse_attention(const node& from, rounding& rounds) {
    const attention_operator& of = *operator_of(from);
    const attention_settings settings = settings_of(of, from);
    const node* const one[] = {&from};
    if (!from.result().is_given()) return "no result";
    if (from.has_too_many_dims()) return "more than " + std::to_string(max_rank) + " dimensions";
    for (std::string why :
         {reason_against_integers(from), reason_against_numbers(of, settings),
          reason_against_attributes(of, from), reason_by_checks(of, from, settings)})
        if (!why.empty()) return why;
    if (!rounds.is_exact_for(one) || divides(from.result())) return rounds_otherwise;
    return "";
}

} // namespace maskwise::ort
