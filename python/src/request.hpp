// What where() was asked, and which way it goes. where() and explain() share it.
#pragma once

#include "python_api.hpp"

#include <maskwise/maskwise.hpp>

namespace maskwise::python {

enum class way : std::uint8_t {
    plan,  // one plan over the arrays as they lie
    cast,  // NumPy's iterator casts piece by piece, a plan selects each piece
    numpy, // numpy.where
};

// Elements of a piece that is cast: the buffers of three operands stay in L2.
inline constexpr npy_intp cast_elements = 16 << 10;

// All arrays are exact NumPy arrays.
struct request {
    nb::object given[3];        // condition, x and y of the call
    nb::object condition, x, y; // the same, or what small ones were cast to
    nb::object dtype;           // of the result, a numpy.dtype; unset for way::numpy
    data_type type = data_type::undef;
    way how = way::numpy;
    const char* why = "";
};

// Whether all three are NumPy arrays, NumPy scalars or Python numbers, which is what make_request
// takes.
bool are_plain(nb::handle condition, nb::handle x, nb::handle y);

// Throws nb::python_error where NumPy refuses, for example types without a common one.
request make_request(nb::handle condition, nb::handle x, nb::handle y);

// The operand as the engine sees it.
tensor_desc describe(nb::handle array, data_type type);

} // namespace maskwise::python
