#pragma once

#include "attention/tile_plan.hpp"
#include "onednn/partition/claim.hpp"

#include <string>

namespace maskwise::onednn {

// Where Maskwise gains nothing over oneDNN: the reason, or nothing where it gains.

// The region cut in two around its rows.
std::string reason_against_rows(const row_region& region);

// The region as one attention.
std::string reason_against_attention(const tile_plan& plan, const graph_settings& settings);

} // namespace maskwise::onednn
