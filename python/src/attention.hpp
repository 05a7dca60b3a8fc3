// attention() on NumPy arrays.
#pragma once

#include "numpy_api.hpp"

#include <optional>

namespace maskwise::python {

// All arrays are exact NumPy arrays; out may be of a subclass. mask and out may be none.
struct attention_call {
    nb::handle q, k, v, mask;
    bool is_causal = false;
    std::optional<double> scale;
    bool enable_gqa = false;
    nb::handle out;
};

// Returns out, or a new array. Throws nb::python_error (TypeError, ValueError) and maskwise::error;
// nothing is written then. Releases the GIL while it computes.
nb::object attention(const attention_call& of);

} // namespace maskwise::python
