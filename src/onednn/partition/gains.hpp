#pragma once

#include "attention/tile_plan.hpp"
#include "onednn/partition/claim.hpp"

#include <string>

namespace maskwise::onednn {

// Both functions return the reason why Maskwise would not be faster than oneDNN; the text is empty
// if Maskwise is faster.

// Maskwise runs only the region's row chain, and oneDNN runs the operators before and after it.
std::string reason_against_rows(const row_region& region);

// Maskwise runs the region as one attention.
std::string reason_against_attention(const tile_plan& plan, const graph_settings& settings);

} // namespace maskwise::onednn
