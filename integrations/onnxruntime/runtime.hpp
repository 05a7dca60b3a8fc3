#pragma once

#include "abi.hpp"

#include "maskwise/maskwise.hpp"

#include <memory>
#include <string_view>
#include <utility>

namespace maskwise::ort {

// The functions of one ONNX Runtime. A process may have two, so each factory has its own.
struct runtime {
#define MAIN(slot, name, result, parameters) result(*name) parameters noexcept;
#define EP MAIN
#include "functions.inc"
    int minor = 0; // 32 of ONNX Runtime 1.32
};

// Released by the function of ONNX Runtime that it comes with.
template <class Object>
using owned = std::unique_ptr<Object, void (*)(Object*) noexcept>;

// `version` is "1.32.0".
runtime read_runtime(const OrtApi* api, std::string_view version);

inline constexpr std::pair<ONNXTensorElementDataType, data_type> element_types[] = {
#define MASKWISE_ORT_none(name, number)
#define MASKWISE_ORT_direct(name, number)                                                          \
    {static_cast<ONNXTensorElementDataType>(number), data_type::name},
#define MASKWISE_DATA_TYPE(name, width, onednn, onnx, onnx_name, ort, openvino)                    \
    MASKWISE_ORT_##ort(name, onnx)
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE
#undef MASKWISE_ORT_direct
#undef MASKWISE_ORT_none
};

// undef for a type that is not in the list.
inline data_type type_of(ONNXTensorElementDataType element) {
    for (const auto& [theirs, ours] : element_types)
        if (theirs == element) return ours;
    return data_type::undef;
}

// A function of ONNX Runtime that failed; the status goes back to it as it is.
struct failed_call {
    OrtStatus* status;
};

inline void check(OrtStatus* status) {
    if (status != nullptr) throw failed_call{status};
}

// The status of what is being handled, with its text. To be called in a handler.
OrtStatus* status_of_exception(const runtime& with) noexcept;

// The body's exceptions as a status: none may reach ONNX Runtime.
template <class Body>
OrtStatus* guarded(const runtime& with, const Body& body) noexcept {
    try {
        body();
        return nullptr;
    } catch (...) {
        return status_of_exception(with);
    }
}

} // namespace maskwise::ort
