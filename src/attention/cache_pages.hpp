#pragma once

#include "attention/tile_plan.hpp"

namespace maskwise {

// Reads an element of a page table. `first` is the address of element {0, 0}, at any alignment.
std::int64_t page_number(const tensor_desc& table, const void* first, std::int64_t sequence,
                         std::int64_t page);

// Throws argument_error if a sequence uses a page that the cache does not have. addresses.rules
// must have passed require_rules.
void require_pages(const tile_plan& plan, const attention_operands& addresses);

} // namespace maskwise
