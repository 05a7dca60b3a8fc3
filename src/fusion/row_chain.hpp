#pragma once

#include "fusion/words.hpp"
#include "plan/row_plan.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace maskwise::fusion {

// A term of a causal mask's offset. For example, a bottom-right mask has the offset keys - rows.
// The term's value is known only at execution.
struct offset_term {
    logical_tensor tensor;
    bool is_subtracted = false;
};

inline constexpr std::size_t max_offset_terms = 8;

// Throws argument_error if the term is not one i32.
void require_offset_term(const tensor_desc& term);

// Returns the sum of the terms at `addresses`. Throws argument_error if an address is null.
std::int64_t offset_of(std::span<const offset_term> terms, std::span<const void* const> addresses);

// A chain of row operations around a Select or before a SoftMax. Only the chain reads the values
// between the scores and the result.
struct row_chain {
    std::size_t scores = 0; // tensor ids
    std::size_t result = 0;
    std::vector<logical_tensor> operands;
    std::vector<row_step> steps; // with indices into `operands`
    std::optional<row_soft_max> soft_max;
    std::optional<int> rank; // the scores' rank, if SoftMax's axis is not negative
    std::optional<row_quantize> quantize;
    std::vector<offset_term> causal_offset;   // the sum of the terms is a causal mask's offset
    std::optional<logical_tensor> statistics; // SoftMax's statistics in training, if used
    std::vector<std::size_t> op_ids;          // of every operator in the chain

    std::size_t length() const { return steps.size() + (soft_max ? 1 : 0); }
};

} // namespace maskwise::fusion
