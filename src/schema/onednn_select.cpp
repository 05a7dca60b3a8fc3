#include "schema/select_schema.hpp"

namespace maskwise {

// Source: the oneDNN Graph specification, operation Select (signature, T1 boolean, T2 table, and
// the two-step rule in the text of auto_broadcast).
const select_schema& onednn_select() {
    static constexpr data_type value_types[] = {data_type::f32, data_type::bf16, data_type::f16};
    static constexpr select_schema schema{
        .dialect = "onednn::Select",
        .inputs = {"cond", "src_0", "src_1"},
        .output = "dst",
        .cond_type = data_type::boolean,
        .value_types = value_types,
        .has_auto_broadcast = true,
        .default_broadcast = auto_broadcast::numpy,
        .rule = broadcast_rule::two_step,
    };
    return schema;
}

} // namespace maskwise
