// The array that a result goes to.
#pragma once

#include "request.hpp"

namespace maskwise::python {

nb::object allocate_row_major(const dims& extents, nb::handle dtype);

// A new array of the common shape, laid out as numpy.where would. Throws NumPy's own ValueError
// where the shapes do not broadcast.
nb::object allocate_output(const request& of);

// Throws TypeError or ValueError where `out` cannot take the result: no array, another dtype or
// shape, read-only, or memory of an operand that is not exactly that of x or y.
void check_output(const request& of, nb::handle out);

// The first of these.
void check_array(nb::handle out, const dims& extents, nb::handle dtype);

// The last of these, for operands of any kind: throws ValueError where `out`, an array, shares
// memory with one that is an array and not exactly x or y.
void check_overlaps(nb::handle out, nb::handle condition, nb::handle x, nb::handle y);

// The same for one operand, which `out` may be exactly or not.
void check_overlap(nb::handle out, nb::handle operand, const char* name, bool may_be_same);

// Broadcasts an array's extents into `to`. False where that does not work.
bool widen(dims& to, nb::handle operand);

} // namespace maskwise::python
