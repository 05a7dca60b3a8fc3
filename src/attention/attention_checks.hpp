#pragma once

#include "maskwise/attention.hpp"

#include <array>
#include <cstdint>

namespace maskwise {

// Names and descriptions of all operands: first input_count inputs, then outputs.
struct named_operand {
    const char* name;
    tensor_desc attention_desc::*desc;
};
inline constexpr std::size_t input_count = 7;
inline constexpr std::array<named_operand, 9> named_operands{{
    {"query", &attention_desc::query},
    {"key", &attention_desc::key},
    {"value", &attention_desc::value},
    {"cond", &attention_desc::cond},
    {"bias", &attention_desc::bias},
    {"sinks", &attention_desc::sinks},
    {"page_table", &attention_desc::page_table},
    {"dst", &attention_desc::dst},
    {"statistics", &attention_desc::statistics},
}};

// Returns the description with strides, dst and scale filled in. Paged key and value get the shape
// of a sequence; their first stride stays the page stride. Throws as compile(attention_desc) does.
attention_desc checked_attention(attention_desc desc);

// Throws argument_error if an operand with elements has a null address.
void require_addresses(const attention_desc& desc, const attention_operands& addresses);

// Throws argument_error for rules that do not fit `desc`, a result of checked_attention. `rules`
// may be null.
void require_rules(const attention_desc& desc, const mask_rules* rules);

// 1 / sqrt(depth).
float default_scale(std::int64_t depth);

// Returns the extent of the dimension before the last two; 1 for a matrix.
std::int64_t heads_of(const tensor_desc& operand);

// Returns the extent of dst's first dimension; 1 for a matrix. `desc` must be a result of
// checked_attention.
std::int64_t sequences_of(const attention_desc& desc);

} // namespace maskwise
