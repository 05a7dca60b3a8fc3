#pragma once

#include "attention/tile_plan.hpp"
#include "fusion/row_chain.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace maskwise::fusion {

// A chain's steps as parameters of attention. Indices point into the chain's operands, followed by
// the numbers that scale query and key. A factor multiplies or divides by one element, whose value
// is known only at execution.
struct attention_form {
    std::vector<row_combine> scale;   // factors before the Tanh; without a Tanh, before the Select
    std::vector<row_combine> cap;     // factors after the Tanh
    std::vector<row_combine> on_fill; // factors after the Select
    bool has_tanh = false;
    bool cond_masks = false, bias_on_fill = false;
    std::optional<std::size_t> cond, bias;
    std::optional<std::size_t> fill; // value of masked scores, one element; none without a Select
};

// Steps must have this order: factors, Tanh, factors, bias, Select, factors, bias. Each is
// optional. There is at most one bias, and no factor follows it. `is_number` says whether an
// operand is one number. Throws argument_error for other steps.
attention_form make_attention_form(const row_chain& chain,
                                   const std::function<bool(std::size_t)>& is_number);

// Scale, soft cap and fill of one execution. `operands` holds the first element of each operand.
attention_numbers attention_numbers_of(const attention_form& form, std::span<const float> operands);

} // namespace maskwise::fusion
