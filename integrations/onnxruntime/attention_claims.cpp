#include "attention_claims.hpp"

#include "attention_settings.hpp"
#include "onnx_attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace maskwise::ort {
namespace {

// Measured: as of find_fusions.cpp, where ONNX Runtime multiplies what its operators do.
constexpr std::int64_t most_depth = 64, most_depth_masked = 128;

std::string type_of_input(const char* name, const value& of) {
    return std::string(name) + " of " + std::string(to_string(of.type));
}

std::string with_number(const char* name, auto number) {
    return std::string(name) + " of " + std::to_string(number);
}

// Of one head; unknown_depth where the shape does not say.
constexpr std::int64_t unknown_depth = -1;
std::int64_t depth_of(const value& of, std::int64_t heads) {
    if (!of.extents || of.extents->rank() < 3) return unknown_depth;
    const std::int64_t last = of.extents->end()[-1];
    if (of.extents->rank() == 4 || last < 0) return last;
    return heads > 0 ? last / heads : unknown_depth;
}

// ONNX Runtime keeps integers in 32 bits: it refuses others, or takes their low bits.
std::string reason_against_integers(const node& of) {
    for (const auto& [name, number] : of.integers())
        if (number != static_cast<std::int32_t>(number))
            return std::string(name) + " of " + std::to_string(number);
    return "";
}

std::string reason_against_numbers(const attention_settings& settings) {
    if (settings.scale && !std::isfinite(*settings.scale))
        return with_number("scale", *settings.scale);
    if (std::isinf(settings.soft_cap)) return with_number("softcap", settings.soft_cap);
    return "";
}

// Which ONNX Runtime does not run.
std::string reason_against_scale(const attention_settings& settings) {
    return settings.scale && *settings.scale <= 0 ? with_number("scale", *settings.scale) : "";
}

// The deepest head; of three dimensions the heads are the attributes'.
std::string reason_against_depth(const node& of, const attention_settings& settings,
                                 bool is_masked) {
    const std::int64_t depth = std::max(depth_of(of.input(0), settings.query_heads),
                                        depth_of(of.input(2), settings.key_heads));
    if (is_masked) return depth > most_depth_masked ? with_number("a depth", depth) : "";
    if (depth == unknown_depth) return "nothing masks, and the depth is not known";
    return depth > most_depth ? "nothing masks, at " + with_number("a depth", depth) : "";
}

bool has_output(const node& of, std::size_t index) {
    return index < of.outputs.size() && of.outputs[index]->is_given();
}

struct onnx_inputs_given {
    explicit onnx_inputs_given(const node& of)
        : mask(of.input(3)), has_past(of.input(4).is_given() || of.input(5).is_given()),
          has_lengths(of.input(6).is_given()) {}
    const value& mask;
    bool has_past, has_lengths;
};

std::string reason_against_types(const node& of, const onnx_inputs_given& given) {
    const data_type type = of.input(0).type;
    if (of.input(2).type != type) return type_of_input("V", of.input(2));
    if (given.mask.is_given() && given.mask.type != data_type::boolean && given.mask.type != type)
        return type_of_input("attn_mask", given.mask);
    return "";
}

// What ONNX Runtime's own operator refuses when it is made or run: its text is better.
std::string reason_against_operands(const node& of, const onnx_inputs_given& given) {
    if (has_output(of, 3)) return "the scores are an output";
    if (!given.has_past) return "";
    if (!of.input(4).is_given() || !of.input(5).is_given() || !has_output(of, 1) ||
        !has_output(of, 2))
        return "past_key, past_value and both results of them are not all there";
    return given.has_lengths ? "both past_key and nonpad_kv_seqlen" : "";
}

std::string reason_against_old(const node& of, const attention_settings& settings,
                               const onnx_inputs_given& given) {
    if (!masks_by_lowest(*of.with)) return "";
    const bool masks = given.mask.is_given() || settings.is_causal;
    if (settings.soft_cap > 0 && masks) return "softcap behind a mask before ONNX Runtime 1.28";
    if (given.has_lengths) return "nonpad_kv_seqlen before ONNX Runtime 1.28";
    // Its own kernel mistakes the heads of three dimensions for each other.
    if (of.input(0).type == data_type::f16) return "f16 before ONNX Runtime 1.28";
    return "";
}

std::string reason_against_ranks(const node& of) {
    for (std::size_t i = 0; i < 3; ++i)
        if (const auto& extents = of.input(i).extents;
            extents && extents->rank() != 3 && extents->rank() != 4)
            return with_number("an input of the rank", extents->rank());
    return "";
}

// The first.
std::string one_of(std::initializer_list<std::string> reasons) {
    for (const std::string& why : reasons)
        if (!why.empty()) return why;
    return "";
}

std::string reason_against_onnx(const node& of) {
    const attention_settings settings = settings_of_onnx(of);
    const onnx_inputs_given given(of);
    const bool is_masked = given.mask.is_given() || settings.is_causal || given.has_lengths;
    return one_of({reason_against_types(of, given), reason_against_operands(of, given),
                   reason_against_scale(settings), reason_against_numbers(settings),
                   reason_against_old(of, settings, given), reason_against_ranks(of),
                   reason_against_depth(of, settings, is_masked)});
}

std::string reason_against_multi_head_inputs(const node& of) {
    enum { key = 1, value, added, mask, bias, past_key, past_value, past_length };
    const auto has = [&](std::size_t i) { return of.input(i).is_given(); };
    if (!has(key) || !has(value)) return "keys or values packed into another input";
    if (has(past_length) || has(past_length + 1))
        return "past_sequence_length or cache_indirection";
    if (has(mask) && has(bias)) return "both key_padding_mask and attention_bias";
    if (has_output(of, 3)) return "the scores are an output";
    if ((has(past_key) || has(past_value)) &&
        !(has(past_key) && has(past_value) && has_output(of, 1) && has_output(of, 2)))
        return "past_key, past_value and both results of them are not all there";
    if (of.input(key).extents && of.input(key).extents->rank() == 5) return "a key of the rank 5";
    return "";
}

std::string reason_against_multi_head(const node& of) {
    constexpr std::size_t mask = 4, bias = 5;
    const attention_settings settings = settings_of_multi_head(of);
    if (settings.query_heads < 1) return with_number("num_heads", settings.query_heads);
    if (!(settings.masked <= 0)) return with_number("mask_filter_value", settings.masked);
    if (settings.is_causal && of.input(bias).is_given())
        return "both unidirectional and attention_bias";
    const bool is_masked =
        settings.is_causal || of.input(mask).is_given() || of.input(bias).is_given();
    return one_of({reason_against_multi_head_inputs(of), reason_against_numbers(settings),
                   reason_against_depth(of, settings, is_masked)});
}

std::string reason_against_rotary(const node& of) {
    enum { query = 0, cosines = 7, sines, positions };
    const auto has = [&](std::size_t i) { return of.input(i).is_given(); };
    const std::int64_t rotates = of.integer("do_rotary", 0);
    if (rotates != 0 && rotates != 1) return with_number("do_rotary", rotates);
    if (rotates == 0)
        return has(cosines) || has(sines) || has(positions) ? "positions without do_rotary" : "";
    if (!has(cosines) || !has(sines)) return "do_rotary without cos_cache or sin_cache";
    for (const std::size_t i : {cosines, sines})
        if (of.input(i).type != of.input(query).type)
            return type_of_input(i == cosines ? "cos_cache" : "sin_cache", of.input(i));
    if (has(positions) && of.input(positions).type != data_type::i64)
        return type_of_input("position_ids", of.input(positions));
    return "";
}

// Inputs and attributes that this kernel does not know, or that change what it computes.
std::string reason_against_group_query_extras(const node& of) {
    constexpr std::size_t known_inputs = 10;
    constexpr const char* names[] = {"attention_bias", "head_sink"};
    for (std::size_t i = known_inputs; i < of.inputs.size(); ++i)
        if (of.input(i).is_given())
            return i - known_inputs < std::size(names) ? names[i - known_inputs]
                                                       : with_number("input number", i);
    if (of.integer("smooth_softmax", 0) == 1) return "smooth_softmax";
    if (of.integer("causal", 1) != 1) return "not causal";
    if (of.integer("qk_output", 0) != 0 || has_output(of, 3)) return "the scores are an output";
    if (of.integer("kv_cache_bit_width", 0) != 0) return "a cache of whole numbers";
    return of.integer("sliding_window_cache", 0) != 0 ? "sliding_window_cache" : "";
}

// Of queries with keys and values beside them, or behind them in the same input.
std::string reason_against_group_query_depth(const node& of, const attention_settings& settings) {
    constexpr std::size_t key = 1;
    if (of.input(key).is_given()) return reason_against_depth(of, settings, true);
    const std::int64_t heads = settings.query_heads + 2 * settings.key_heads;
    const std::int64_t depth = depth_of(of.input(0), heads);
    return depth > most_depth_masked ? with_number("a depth", depth) : "";
}

std::string reason_against_group_query(const node& of) {
    constexpr std::size_t key = 1, value = 2, past_key = 3, lengths = 5, total = 6;
    const attention_settings settings = settings_of_group_query(of);
    for (const std::size_t i : {std::size_t{0}, lengths, total})
        if (!of.input(i).is_given()) return "query and lengths are not all there";
    if (of.input(key).is_given() != of.input(value).is_given())
        return "one of key and value is missing";
    for (std::size_t i = past_key; i <= past_key + 1; ++i)
        if (of.input(i).is_given() && of.input(i).type != of.input(0).type)
            return type_of_input("the past", of.input(i));
    if (!has_output(of, 1) || !has_output(of, 2)) return "no present_key or present_value";
    if (settings.query_heads < 1) return with_number("num_heads", settings.query_heads);
    if (settings.key_heads < 1) return with_number("kv_num_heads", settings.key_heads);
    if (const auto window = of.integer("local_window_size", -1); window < -1 || window == 0)
        return with_number("local_window_size", window);
    return one_of({reason_against_rotary(of), reason_against_group_query_extras(of),
                   reason_against_numbers(settings),
                   reason_against_group_query_depth(of, settings)});
}

std::string reason_by_operator(const node& of) {
    if (!of.is_own) return reason_against_onnx(of);
    return of.is("MultiHeadAttention") ? reason_against_multi_head(of)
                                       : reason_against_group_query(of);
}

} // namespace

bool is_attention(const node& of) {
    return of.type.find("Attention") != std::string_view::npos;
}

std::string reason_to_refuse_attention(const node& of, rounding& rounds) {
    const node* const one[] = {&of};
    if (!of.result().is_given()) return "no result";
    if (of.has_too_many_dims()) return "more than " + std::to_string(max_rank) + " dimensions";
    if (std::string why = reason_against_integers(of); !why.empty()) return why;
    if (std::string why = reason_by_operator(of); !why.empty()) return why;
    if (!rounds.is_exact_for(one) || divides(of.result())) return rounds_otherwise;
    return "";
}

} // namespace maskwise::ort
