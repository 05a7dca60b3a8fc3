#pragma once

#include "kernel_context.hpp"
#include "model_graph.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// Describes the attention operators, and reads their inputs and attributes: from a model's node for
// a claim, from a kernel's context for a call.
namespace maskwise::ort {

enum class attention_kind : std::uint8_t { onnx, multi_head, group_query };

enum class role : std::uint8_t {
    query,
    key,
    value,
    projection_bias, // added to query, key and value
    mask,            // boolean, padding or a bias
    bias,
    past_key,
    past_value,
    lengths,
    total,
    cosines,
    sines,
    positions,
    unsupported
};

struct input_slot {
    role used_as;
    std::string_view name; // in the operator's definition
};

struct attention_operator {
    attention_kind kind;
    const char *type, *domain;
    int first, last; // opset versions
    // Names of attributes. If `causal` is null, the operator is always causal.
    const char *query_heads, *key_heads, *causal;
    std::span<const input_slot> inputs; // by position
};

std::span<const attention_operator> attention_operators();
// Returns null if Maskwise has no kernel for the node.
const attention_operator* operator_of(const node& node);

struct operand {
    std::string_view name;
    bool is_given = false;
    data_type type = data_type::undef;
    std::optional<dims> extents; // -1: unknown extent; nullopt: unknown rank
    const void* data = nullptr;  // only in a call

    int rank() const { return extents ? extents->rank() : -1; }
};

struct attention_inputs {
    attention_inputs(const attention_operator& op, const node& node);
    attention_inputs(const attention_operator& op, const kernel_context& context);

    const operand& operator[](role used_as) const {
        return by_role[static_cast<std::size_t>(used_as)];
    }

    std::array<operand, static_cast<std::size_t>(role::unsupported)> by_role;
    std::string unsupported; // name of the first input that Maskwise does not support
    // Whether the node has the outputs for present keys and values, and for scores. Set only for
    // claims, because a call learns this when it allocates the outputs.
    bool has_present = true, has_scores = false;

private:
    template <class Read>
    void read(const attention_operator& op, std::size_t count, const Read& read_input);
};

struct attention_settings {
    std::int64_t query_heads = 0, key_heads = 0; // 0: unset
    bool is_causal = false;
    bool pads_mask = false;           // keys past the columns of a mask are masked
    std::optional<float> scale;       // nullopt: 1 / sqrt(depth)
    float soft_cap = 0;               // 0: none
    float masked = 0;                 // added by MultiHeadAttention to masked scores
    std::int64_t window = 0;          // number of unmasked keys up to a row's position; 0: all
    bool rotates = false;             // rotary embedding of queries and keys
    bool rotates_interleaved = false; // rotates pairs of adjacent elements: see rotary_positions
};

// `attributes` has integer(name, fallback), number(name, fallback) and version(). As in ONNX
// Runtime, a soft cap of 0 or less is unset. A scale of NaN is unset in ONNX's operator, and a
// scale of 0 is unset in operators of com.microsoft.
template <class Attributes>
attention_settings settings_of(const attention_operator& op, const Attributes& attributes) {
    const bool is_onnx = op.kind == attention_kind::onnx;
    attention_settings settings;
    settings.query_heads = attributes.integer(op.query_heads, 0);
    settings.key_heads = attributes.integer(op.key_heads, 0);
    settings.is_causal = op.causal == nullptr || attributes.integer(op.causal, 0) == 1;
    settings.pads_mask = is_onnx && attributes.version() >= 24;
    const float scale = attributes.number("scale", is_onnx ? NAN : 0);
    if (is_onnx ? !std::isnan(scale) : scale != 0) settings.scale = scale;
    if (const float cap = attributes.number("softcap", 0); cap > 0) settings.soft_cap = cap;
    settings.masked = attributes.number("mask_filter_value", -10000.0F);
    if (const auto window = attributes.integer("local_window_size", -1); window > 0)
        settings.window = window;
    settings.rotates = attributes.integer("do_rotary", 0) == 1;
    settings.rotates_interleaved = attributes.integer("rotary_interleaved", 0) == 1;
    return settings;
}

// Before 1.28, ONNX Runtime's Attention sets masked scores to the lowest number, so a fully masked
// row is the mean of all values. It also adds the mask before the soft cap.
inline bool masks_by_lowest(const runtime& api) {
    constexpr int first_other = 28;
    return api.minor < first_other;
}

} // namespace maskwise::ort
