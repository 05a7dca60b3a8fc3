// Allocates or checks the array for a result.
#pragma once

#include "request.hpp"

namespace maskwise::python {

nb::object allocate_row_major(const dims& extents, nb::handle dtype);

// Returns a new array of the common shape, with numpy.where's layout. Throws NumPy's ValueError if
// the shapes do not broadcast.
nb::object allocate_output(const request& call);

// Throws TypeError or ValueError if `out` cannot receive the result. Calls check_array and
// check_overlaps.
void check_output(const request& call, nb::handle out);

// Throws TypeError or ValueError if `out` is not a writable array of this shape and dtype.
void check_array(nb::handle out, const dims& extents, nb::handle dtype);

// `out` is an array; operands may be any object. Throws ValueError if `out` shares memory with an
// operand that is an array, unless `out` is exactly x or y.
void check_overlaps(nb::handle out, nb::handle condition, nb::handle x, nb::handle y);

// Checks one operand. `may_be_same`: `out` may be exactly this operand.
void check_overlap(nb::handle out, nb::handle operand, const char* name, bool may_be_same);

// Broadcasts an array's extents into `shape`. Returns false if the shapes do not match.
bool widen(dims& shape, nb::handle operand);

} // namespace maskwise::python
