#pragma once

#include "plan/expression_plan.hpp"

#include <span>

namespace maskwise {

// Runs the plan on these operands, inputs in the order of the plan's: on the caller's thread where
// small, on more where large. Takes no lock. Allocates, and may throw std::bad_alloc, only where
// there are reorderings and no earlier execution has left its scratch memory.
void run_expression(const expression_plan& plan, std::span<const void* const> inputs, void* dst);

} // namespace maskwise
