#pragma once

#include "abi.hpp"

#include "maskwise/maskwise.hpp"

#include <memory>
#include <string_view>
#include <utility>

namespace maskwise::ort {

// The functions of one ONNX Runtime. Each factory has a table, because a process may have several
// ONNX Runtimes.
struct runtime {
#define MAIN(slot, name, result, parameters) result(*name) parameters noexcept;
#define EP MAIN
#include "functions.inc"
    int minor = 0; // 32 for ONNX Runtime 1.32
};

// Owns an object of ONNX Runtime, with its release function.
template <class Object>
using owned = std::unique_ptr<Object, void (*)(Object*) noexcept>;

// `version` is ONNX Runtime's version, for example "1.32.0".
runtime read_runtime(const OrtApi* main_table, std::string_view version);

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

// Returns undef for a type that is not in element_types.
inline data_type type_of(ONNXTensorElementDataType element) {
    for (const auto& [ort_type, type] : element_types)
        if (ort_type == element) return type;
    return data_type::undef;
}

// Thrown if a function of ONNX Runtime fails. ONNX Runtime gets the status back unchanged.
struct failed_call {
    OrtStatus* status;
};

inline void check(OrtStatus* status) {
    if (status != nullptr) throw failed_call{status};
}

// Returns the status for the current exception. Call only in a handler.
OrtStatus* status_of_exception(const runtime& api) noexcept;

// Runs `body`. Converts exceptions to a status, because no exception may reach ONNX Runtime.
template <class Body>
OrtStatus* guarded(const runtime& api, const Body& body) noexcept {
    try {
        body();
        return nullptr;
    } catch (...) {
        return status_of_exception(api);
    }
}

} // namespace maskwise::ort
