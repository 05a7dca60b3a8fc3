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

// A chain's steps as attention computes them. Numbers stand for the chain's operands. Factors are
// multiplications and divisions by one element, known at execution.
struct attention_form {
    std::vector<row_combine> scale;   // before a Tanh
    std::vector<row_combine> cap;     // after it
    std::vector<row_combine> on_fill; // after the Select
    bool has_tanh = false;
    bool cond_masks = false, bias_on_fill = false;
    std::optional<std::size_t> cond, bias;
    std::optional<std::size_t> fill; // one element; none without a Select
};

// The steps in the order that attention has: factors, Tanh, factors, bias, Select, factors, bias.
// `is_number` tells of an operand whether it is one number. Throws argument_error for other
// steps.
attention_form make_attention_form(const row_chain& chain,
                                   const std::function<bool(std::size_t)>& is_number);

// The numbers of an execution but its causal offset, of the operands' first elements.
attention_numbers attention_numbers_of(const attention_form& form, std::span<const float> operands);

} // namespace maskwise::fusion
