// The plans of recent calls.
#pragma once

#include "request.hpp"

namespace maskwise::python {

// The plan for these arrays, all of type `type` but for the condition. Throws what
// maskwise::compile does. Holders of the GIL only.
plan find_plan(nb::handle condition, nb::handle x, nb::handle y, nb::handle dst, data_type type);

} // namespace maskwise::python
