#pragma once

#include "maskwise/mask_rules.hpp"
#include "support/case_generator.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace maskwise::test {

// The numbers of sequences, rows and keys that rules apply to.
struct rule_shape {
    std::int64_t sequences = 1, rows = 0, keys = 0;
};

// No mask, a causal mask aligned at the first row, and a causal mask aligned at the last row.
inline const std::array<std::optional<mask_rules>, 3> boundaries{
    std::nullopt, mask_rules{.causal = true}, mask_rules{.from_end = true, .causal = true}};

// Whether the rules, by their definition, leave this score unmasked.
bool keeps(const mask_rules& rules, const rule_shape& shape, std::int64_t sequence,
           std::int64_t row, std::int64_t key);

// The row's position, by the definition of the rules.
std::int64_t position_of(const mask_rules& rules, const rule_shape& shape, std::int64_t sequence,
                         std::int64_t row);

// Random rules, with numbers up to about the numbers of rows and keys.
mask_rules draw_rules(generator& random, const rule_shape& shape);

std::string to_string(const mask_rules& rules);

} // namespace maskwise::test
