#pragma once

#include "attention_inputs.hpp"

#include <cstdint>
#include <string>
#include <string_view>

// What an attention operator's operands and attributes must be. Asked of a node with what its model
// states, and again of each call with what is given then.
namespace maskwise::ort {

// -1: unknown.
struct attention_shape {
    dims query, key, value;       // {batch, heads, rows, depth}
    std::int64_t past = 0;        // rows of past_key
    std::int64_t masked_from = 0; // the first key that a mask of ONNX's masks in all rows

    std::int64_t batch() const { return query[0]; }
    std::int64_t rows() const { return query[2]; }
    std::int64_t all_keys() const { return past < 0 || key[2] < 0 ? -1 : past + key[2]; }
};

// All errors of the kernels begin so.
inline constexpr std::string_view error_prefix = "Maskwise: ";
[[noreturn]] void refuse(const std::string& why);       // throws argument_error
[[noreturn]] void refuse_shape(const std::string& why); // throws shape_error

// Refuses other extents, with both shapes; -1 in either fits any.
void expect_shape(std::string_view name, const dims& actual, const dims& expected);

// Refuses, with the shape or the name, what no kernel here takes.
attention_shape check_operands(const runtime& with, const attention_operator& of,
                               const attention_inputs& in, const attention_settings& settings);

} // namespace maskwise::ort
