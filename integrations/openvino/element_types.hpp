#pragma once

#include "maskwise/maskwise.hpp"

#include <openvino/core/type/element_type.hpp>

namespace maskwise::openvino {

struct element_pair {
    ov::element::Type_t openvino;
    data_type maskwise;
    bool is_converted; // the CPU plugin computes in another type
};

// The types of Select-1 that Maskwise supports.
inline constexpr element_pair element_types[] = {
#define MASKWISE_OPENVINO_none(name)
#define MASKWISE_OPENVINO_direct(name) {ov::element::name, data_type::name, false},
#define MASKWISE_OPENVINO_converted(name) {ov::element::name, data_type::name, true},
#define MASKWISE_DATA_TYPE(name, width, onednn, onnx, onnx_name, ort, openvino)                    \
    MASKWISE_OPENVINO_##openvino(name)
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE
#undef MASKWISE_OPENVINO_converted
#undef MASKWISE_OPENVINO_direct
#undef MASKWISE_OPENVINO_none
};

// `maskwise` is undef if Maskwise does not support the type.
inline element_pair pair_of(ov::element::Type_t element) {
    for (const element_pair& pair : element_types)
        if (pair.openvino == element) return pair;
    return {element, data_type::undef, false};
}

inline data_type type_of(ov::element::Type_t element) {
    return pair_of(element).maskwise;
}

} // namespace maskwise::openvino
