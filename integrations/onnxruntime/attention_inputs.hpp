#pragma once

#include "calls.hpp"
#include "model_graph.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// One description of each attention operator, and one reader of its inputs and attributes: of a
// node, to decide on a claim, and of a call.
namespace maskwise::ort {

enum class attention_kind : std::uint8_t { onnx, multi_head, group_query };

enum class role : std::uint8_t {
    query,
    key,
    value,
    added, // to the projections
    mask,  // keeps keys, or is a bias
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
    role as;
    std::string_view name; // as the operator's definition has it
};

struct attention_operator {
    attention_kind kind;
    const char *type, *domain;
    int first, last; // versions
    // Names of attributes. Without one for causal the operator always is.
    const char *query_heads, *key_heads, *causal;
    std::span<const input_slot> inputs; // by position
};

std::span<const attention_operator> attention_operators();
// Returns null if Maskwise has no kernel for the node.
const attention_operator* operator_of(const node& of);

struct operand {
    std::string_view name;
    bool is_given = false;
    data_type type = data_type::undef;
    std::optional<dims> extents; // -1: unknown; nullopt: not even the rank is known
    const void* data = nullptr;  // only in a call

    int rank() const { return extents ? extents->rank() : -1; }
};

struct attention_inputs {
    attention_inputs(const attention_operator& of, const node& from);
    attention_inputs(const attention_operator& of, const call& from);

    const operand& operator[](role which) const { return all[static_cast<std::size_t>(which)]; }

    std::array<operand, static_cast<std::size_t>(role::unsupported)> all;
    std::string unsupported; // name of the first given input that the kernels here do not know
    // Outputs. A call does not know them before they are made: its node was claimed with them.
    bool has_present = true, has_scores = false;

private:
    template <class Read>
    void read(const attention_operator& of, std::size_t count, const Read& read_input);
};

struct attention_settings {
    std::int64_t query_heads = 0, key_heads = 0; // 0: not given
    bool is_causal = false;
    bool pads_mask = false;          // keys past the columns of a mask are masked
    std::optional<float> scale;      // nullopt: 1 / sqrt(depth)
    float soft_cap = 0;              // 0: none
    float masked = 0;                // what MultiHeadAttention adds where its mask is 0
    std::int64_t window = 0;         // keys that each row keeps; 0: all up to its own
    bool rotates = false;            // queries and keys, by their positions
    bool rotates_neighbours = false; // else elements half of the rotated width apart
};

// `from` has integer(name, otherwise), number(name, otherwise) and version(). ONNX Runtime takes a
// cap of 0 or less as not given; a scale of NaN in ONNX's operator, and of 0 in its own.
template <class Attributes>
attention_settings settings_of(const attention_operator& of, const Attributes& from) {
    const bool is_onnx = of.kind == attention_kind::onnx;
    attention_settings read;
    read.query_heads = from.integer(of.query_heads, 0);
    read.key_heads = from.integer(of.key_heads, 0);
    read.is_causal = of.causal == nullptr || from.integer(of.causal, 0) == 1;
    read.pads_mask = is_onnx && from.version() >= 24;
    const float scale = from.number("scale", is_onnx ? NAN : 0);
    if (is_onnx ? !std::isnan(scale) : scale != 0) read.scale = scale;
    if (const float cap = from.number("softcap", 0); cap > 0) read.soft_cap = cap;
    read.masked = from.number("mask_filter_value", -10000.0F);
    if (const auto window = from.integer("local_window_size", -1); window > 0) read.window = window;
    read.rotates = from.integer("do_rotary", 0) == 1;
    read.rotates_neighbours = from.integer("rotary_interleaved", 0) == 1;
    return read;
}

// Before 1.28 ONNX Runtime's Attention masked by the lowest number only, so that a row without an
// unmasked key was the mean of all values, and added the mask before the soft cap.
inline bool masks_by_lowest(const runtime& with) {
    constexpr int first_other = 28;
    return with.minor < first_other;
}

} // namespace maskwise::ort
