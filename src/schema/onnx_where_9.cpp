#include "schema/select_schema.hpp"

namespace maskwise {

// Source: ONNX's operator Where since version 9 (type constraints B and T, multidirectional
// broadcasting of all three inputs).
const select_schema& onnx_where_9() {
    using enum data_type;
    static constexpr data_type value_types[] = {u8,  u16,    u32,     u64,       i8,
                                                i16, i32,    i64,     f16,       f32,
                                                f64, string, boolean, complex64, complex128};
    static constexpr select_schema schema{
        .dialect = "onnx::Where-9",
        .inputs = {"condition", "X", "Y"},
        .output = "output",
        .cond_type = boolean,
        .value_types = value_types,
        .has_auto_broadcast = false,
        .default_broadcast = auto_broadcast::numpy,
        .rule = broadcast_rule::multidirectional,
    };
    return schema;
}

} // namespace maskwise
