#pragma once

#include "support/case_generator.hpp"

#include "base/cpu.hpp"
#include "plan/select_plan.hpp"

#include <cstdint>
#include <string>

namespace maskwise::test {

// The engine's description of a case.
select_desc describe(const select_case& layouts);

// Builds the case's plan for `target` and runs it on random bytes between guard pages, in one or
// several parts. Returns "" if the result equals the reference, else a description of the error and
// the case. Throws like build_plan.
std::string checked_run(generator& random, select_case layouts, isa target);

} // namespace maskwise::test
