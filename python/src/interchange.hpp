// Arrays of other libraries, by DLPack, without a copy.
#pragma once

#include "numpy_api.hpp"

namespace maskwise::python {

// A read-only NumPy array over the memory of any object with __dlpack__, bfloat16 included; it
// keeps that memory alive. Throws nb::python_error: BufferError where the memory is not the CPU's,
// TypeError for types that NumPy does not have, and what the library itself refuses with (torch:
// BufferError for what requires a gradient).
nb::object view_of(nb::handle foreign);

// An object with __dlpack__ over a NumPy array's memory, bfloat16 included
// (numpy.ndarray.__dlpack__ refuses it).
nb::object exported(nb::handle array);

} // namespace maskwise::python
