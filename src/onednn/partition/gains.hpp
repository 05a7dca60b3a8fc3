#pragma once

#include "attention/tile_plan.hpp"
#include "onednn/partition/claim.hpp"

#include <string>

namespace maskwise::onednn {

// The reason why Maskwise gains nothing over oneDNN; empty if it gains.

// For the region cut in two around its rows.
std::string reason_against_rows(const row_region& region);

// For the region as one attention.
std::string reason_against_attention(const tile_plan& plan, const graph_settings& settings);

} // namespace maskwise::onednn
