// A call of where() or explain(), and how it runs.
#pragma once

#include "python_api.hpp"

#include <maskwise/maskwise.hpp>

namespace maskwise::python {

enum class way : std::uint8_t {
    plan,  // one plan reads the arrays in place
    cast,  // NumPy's iterator casts into buffers, a plan selects from each buffer
    numpy, // numpy.where
};

// Elements per buffer of the casting iterator. The buffers of three operands fit in L2.
inline constexpr npy_intp cast_elements = 16 << 10;

// All arrays are exact NumPy arrays.
struct request {
    nb::object originals[3];    // condition, x and y of the call
    nb::object condition, x, y; // the originals; small arrays may have been cast
    nb::object dtype;           // of the result, a numpy.dtype; unset for way::numpy
    data_type type = data_type::undef;
    way how = way::numpy;
    const char* why = "";
};

// Whether all three are NumPy arrays, NumPy scalars or Python numbers, as make_request requires.
bool are_plain(nb::handle condition, nb::handle x, nb::handle y);

// Throws nb::python_error if NumPy refuses the operands, for example without a common dtype.
request make_request(nb::handle condition, nb::handle x, nb::handle y);

// Describes the array for the engine.
tensor_desc describe(nb::handle array, data_type type);

} // namespace maskwise::python
