// Arrays of other libraries, by DLPack, without a copy.
#pragma once

#include "numpy_api.hpp"

namespace maskwise::python {

// A NumPy array over the memory of any object with __dlpack__; it keeps that memory alive. Throws
// nb::python_error: BufferError where the memory is not the CPU's (or not writable and `writable`
// is asked for), TypeError for types that NumPy does not have.
nb::object view_of(nb::handle foreign, bool writable);

// An object with __dlpack__ over a NumPy array's memory, bfloat16 included (NumPy's own has none).
nb::object exported(nb::handle array);

} // namespace maskwise::python
