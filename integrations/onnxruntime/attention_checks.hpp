#pragma once

#include "attention_inputs.hpp"

#include <cstdint>
#include <string>
#include <string_view>

// Checks of an attention operator's operands and attributes: with the model's shapes before a
// claim, with the actual shapes in each call.
namespace maskwise::ort {

// An extent of -1 is unknown.
struct attention_shape {
    dims query, key, value;       // {batch, heads, rows, depth}
    std::int64_t past = 0;        // rows of past_key
    std::int64_t masked_from = 0; // ONNX's Attention masks the keys from this index on

    std::int64_t batch() const { return query[0]; }
    std::int64_t rows() const { return query[2]; }
    std::int64_t all_keys() const { return past < 0 || key[2] < 0 ? -1 : past + key[2]; }
};

// Begins the text of every error of the kernels.
inline constexpr std::string_view error_prefix = "Maskwise: ";
[[noreturn]] void refuse(const std::string& why);       // throws argument_error
[[noreturn]] void refuse_shape(const std::string& why); // throws shape_error

// Throws shape_error if ranks or extents differ. An extent of -1, actual or expected, fits any.
void expect_shape(std::string_view name, const dims& actual, const dims& expected);

// Returns the operands' shapes, split into heads. Throws argument_error or shape_error for
// unsupported operands and numbers of heads.
attention_shape check_operands(const runtime& api, const attention_operator& op,
                               const attention_inputs& inputs, const attention_settings& settings);

} // namespace maskwise::ort
