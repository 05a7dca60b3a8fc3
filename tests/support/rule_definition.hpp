#pragma once

#include "maskwise/mask_rules.hpp"
#include "support/case_generator.hpp"

#include <cstdint>
#include <string>

namespace maskwise::test {

// The shape to which rules apply.
struct rule_shape {
    std::int64_t sequences = 1, rows = 0, keys = 0;
};

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
