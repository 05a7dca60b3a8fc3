// Which NumPy dtype is which data type.
#pragma once

#include "numpy_api.hpp"

#include <maskwise/maskwise.hpp>

namespace maskwise::python {

// undef for what Maskwise leaves to NumPy: objects, text, structures, longdouble, byte-swapped.
// datetime64 and timedelta64 are moved as i64; callers compare their units.
data_type type_of(PyArray_Descr* dtype);

} // namespace maskwise::python
