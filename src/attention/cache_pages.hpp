#pragma once

#include "attention/tile_plan.hpp"

namespace maskwise {

// An element of a page table, which may have any alignment.
std::int64_t page_number(const tensor_desc& table, const void* first, std::int64_t sequence,
                         std::int64_t page);

// Throws argument_error if a sequence uses a page that the cache does not have. The rules must be
// checked.
void require_pages(const tile_plan& plan, const attention_operands& addresses);

} // namespace maskwise
