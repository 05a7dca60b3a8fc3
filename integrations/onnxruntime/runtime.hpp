#pragma once

#include "abi.hpp"

#include "maskwise/maskwise.hpp"

namespace maskwise::ort {

// The functions of one ONNX Runtime. A process may have two, so each factory has its own.
struct runtime {
#define MAIN(slot, name, result, parameters) result(*name) parameters noexcept;
#define EP(slot, name, result, parameters) result(*name) parameters noexcept;
#include "functions.inc"
#undef MAIN
#undef EP
};

runtime read_runtime(const abi::api* api);

// A function of ONNX Runtime that failed; the status goes back to it as it is.
struct failed_call {
    abi::status* status;
};

inline void check(abi::status* status) {
    if (status != nullptr) throw failed_call{status};
}

// The status of what is being handled, with its text. To be called in a handler.
abi::status* status_of_exception(const runtime& with) noexcept;

// The body's exceptions as a status: none may reach ONNX Runtime.
template <class Body>
abi::status* guarded(const runtime& with, const Body& body) noexcept {
    try {
        body();
        return nullptr;
    } catch (...) {
        return status_of_exception(with);
    }
}

} // namespace maskwise::ort
