#pragma once

#include "maskwise/mask_rules.hpp"
#include "support/case_generator.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace maskwise::test {

// The shape to which rules apply.
struct rule_shape {
    std::int64_t sequences = 1, rows = 0, keys = 0;
};

// No mask, and a causal mask from the first row and from the last one.
inline const std::array<std::optional<mask_rules>, 3> boundaries{
    std::nullopt, mask_rules{.causal = true}, mask_rules{.from_end = true, .causal = true}};

// Whether the rules keep this place, by definition.
bool keeps(const mask_rules& rules, const rule_shape& shape, std::int64_t sequence,
           std::int64_t row, std::int64_t key);

// The row's position, by definition.
std::int64_t position_of(const mask_rules& rules, const rule_shape& shape, std::int64_t sequence,
                         std::int64_t row);

// Random rules, with counts near those of the shape.
mask_rules draw_rules(generator& random, const rule_shape& shape);

std::string to_string(const mask_rules& rules);

} // namespace maskwise::test
