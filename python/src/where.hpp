// where() on NumPy arrays.
#pragma once

#include "request.hpp"

namespace maskwise::python {

// numpy.where's answer for a request that is not way::numpy. `out` is none, or takes the result and
// is returned. Throws nb::python_error (ValueError, TypeError), or maskwise::error where out's
// layout cannot be written; nothing is written then. Releases the GIL while elements are moved.
nb::object run(const request& of, nb::handle out);

// The plan of a request for way::plan; its result is allocated for it.
plan plan_of(const request& of);

} // namespace maskwise::python
