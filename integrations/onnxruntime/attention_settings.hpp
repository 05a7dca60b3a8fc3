#pragma once

#include "model_graph.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace maskwise::ort {

// What the attributes of an attention operator say.
struct attention_settings {
    std::int64_t query_heads = 0, key_heads = 0; // 0: not given
    bool is_causal = false;
    bool pads_mask = false;     // keys behind the columns of a mask are masked
    std::optional<float> scale; // 1 / sqrt(depth) where not given
    float soft_cap = 0;         // 0: none
    float masked = 0;           // what MultiHeadAttention adds where its mask is 0
    std::int64_t window = 0;    // keys that each row of GroupQueryAttention keeps; 0: all before it
    bool rotates = false;       // queries and keys, by their positions
    bool rotates_neighbours = false; // or else elements half of what is rotated apart
};

// `of` has integer(name, otherwise), number(name, otherwise) and version(). ONNX Runtime takes a
// cap of 0 or less, and a scale of NaN, as not given.
template <class Attributes>
attention_settings settings_of_onnx(const Attributes& of) {
    attention_settings found;
    found.query_heads = of.integer("q_num_heads", 0);
    found.key_heads = of.integer("kv_num_heads", 0);
    found.is_causal = of.integer("is_causal", 0) == 1;
    found.pads_mask = of.version() >= 24;
    if (const float scale = of.number("scale", NAN); !std::isnan(scale)) found.scale = scale;
    if (const float cap = of.number("softcap", 0); cap > 0) found.soft_cap = cap;
    return found;
}

// Here a scale of 0 is not given.
template <class Attributes>
attention_settings settings_of_multi_head(const Attributes& of) {
    attention_settings found;
    found.query_heads = found.key_heads = of.integer("num_heads", 0);
    found.is_causal = of.integer("unidirectional", 0) == 1;
    if (const float scale = of.number("scale", 0); scale != 0) found.scale = scale;
    found.masked = of.number("mask_filter_value", -10000.0F);
    return found;
}

// As the former; a window of -1 is none.
template <class Attributes>
attention_settings settings_of_group_query(const Attributes& of) {
    attention_settings found;
    found.query_heads = of.integer("num_heads", 0);
    found.key_heads = of.integer("kv_num_heads", 0);
    if (const float scale = of.number("scale", 0); scale != 0) found.scale = scale;
    if (const float cap = of.number("softcap", 0); cap > 0) found.soft_cap = cap;
    found.window = std::max<std::int64_t>(of.integer("local_window_size", -1), 0);
    found.rotates = of.integer("do_rotary", 0) == 1;
    found.rotates_neighbours = of.integer("rotary_interleaved", 0) == 1;
    return found;
}

// A kernel's, as a node has its own.
struct kernel_attributes {
    const runtime& with;
    const OrtKernelInfo* info;

    int version() const {
        int since = 0;
        check(with.KernelInfo_GetOperatorSinceVersion(info, &since));
        return since;
    }
    std::int64_t integer(const char* name, std::int64_t otherwise) const {
        return read(with.KernelInfoGetAttribute_int64, name, otherwise);
    }
    float number(const char* name, float otherwise) const {
        return read(with.KernelInfoGetAttribute_float, name, otherwise);
    }

private:
    template <class Function, class Number>
    Number read(Function function, const char* name, Number otherwise) const {
        Number found = otherwise;
        OrtStatus* const status = function(info, name, &found);
        if (status == nullptr) return found;
        with.ReleaseStatus(status);
        return otherwise;
    }
};

} // namespace maskwise::ort
