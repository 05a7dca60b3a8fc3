#pragma once

#include "attention/tile_plan.hpp"
#include "onednn/partition/claim.hpp"

#include <string>

namespace maskwise::onednn {

// Both functions return why Maskwise would not be faster than oneDNN, or an empty text.

// For Maskwise running the row chain, and oneDNN the operators before and after the row chain.
std::string reason_against_rows(const row_region& region);

// For Maskwise running the region as one attention.
std::string reason_against_attention(const tile_plan& plan, const graph_settings& settings);

} // namespace maskwise::onednn
