#include "schema/select_schema.hpp"

namespace maskwise {

// Source: OpenVINO's operation set, Select-1 (inputs, T any type that the engine has as a number or
// boolean, T_COND boolean, attribute auto_broadcast and its two-step rule).
const select_schema& openvino_select_1() {
    using enum data_type;
    static constexpr data_type value_types[] = {f16, bf16, f32, f64, i8,  i16,    i32,
                                                i64, u8,   u16, u32, u64, boolean};
    static constexpr select_schema schema{
        .dialect = "openvino::Select-1",
        .inputs = {"cond", "then", "else"},
        .output = "output",
        .cond_type = boolean,
        .value_types = value_types,
        .has_auto_broadcast = true,
        .default_broadcast = auto_broadcast::numpy,
        .rule = broadcast_rule::two_step,
    };
    return schema;
}

} // namespace maskwise
