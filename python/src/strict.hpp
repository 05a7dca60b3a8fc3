// select(): the strict forms.
#pragma once

#include "request.hpp"

namespace maskwise::python {

// dst = cond ? src_0 : src_1 for exact NumPy arrays, by a dialect's own rules: no promotion, a
// boolean cond, the dialect's types and broadcast. Returns a new row-major array. Throws
// maskwise::invalid_shape, and nb::python_error (TypeError, ValueError).
nb::object select(nb::handle cond, nb::handle src_0, nb::handle src_1, nb::handle broadcast,
                  nb::handle dialect_name);

} // namespace maskwise::python
