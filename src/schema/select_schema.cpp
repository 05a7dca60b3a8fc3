#include "schema/select_schema.hpp"

#include "base/error.hpp"
#include "tensor/broadcast.hpp"

#include <algorithm>
#include <string>

namespace maskwise {
namespace {

[[noreturn]] void throw_type(const select_schema& schema, std::string_view input, data_type given,
                             const std::string& expected) {
    throw invalid_argument(std::string(schema.dialect) + ": " + std::string(input) + " is " +
                           std::string(to_string(given)) + ", expected " + expected);
}

std::string list_types(std::span<const data_type> types) {
    std::string text;
    for (const data_type type : types) {
        if (!text.empty()) text += '|';
        text += to_string(type);
    }
    return text;
}

[[noreturn]] void throw_not_equal(const select_schema& schema, const dims& cond, const dims& src_0,
                                  const dims& src_1) {
    throw invalid_shape(std::string(schema.dialect) + ": auto_broadcast none needs equal shapes, " +
                        std::string(schema.inputs[0]) + " is " + to_string(cond) + ", " +
                        std::string(schema.inputs[1]) + " is " + to_string(src_0) + ", " +
                        std::string(schema.inputs[2]) + " is " + to_string(src_1));
}

} // namespace

std::optional<auto_broadcast> parse_auto_broadcast(std::string_view text) {
    if (text == "none") return auto_broadcast::none;
    if (text == "numpy") return auto_broadcast::numpy;
    return std::nullopt;
}

const select_schema& schema_of(dialect form) {
    switch (form) {
    case dialect::onednn_select:
        return onednn_select();
    case dialect::openvino_select_1:
        return openvino_select_1();
    case dialect::onnx_where_9:
        return onnx_where_9();
    case dialect::onnx_where_16:
        return onnx_where_16();
    }
    throw invalid_argument("dialect " + std::to_string(static_cast<int>(form)) + " is unknown");
}

void check_types(const select_schema& schema, data_type cond, data_type src_0, data_type src_1,
                 data_type dst) {
    if (cond != schema.cond_type)
        throw_type(schema, schema.inputs[0], cond, std::string(to_string(schema.cond_type)));
    const auto& legal = schema.value_types;
    if (std::find(legal.begin(), legal.end(), src_0) == legal.end())
        throw_type(schema, schema.inputs[1], src_0, list_types(legal));
    const std::string same = std::string(to_string(src_0)) + " as " + std::string(schema.inputs[1]);
    if (src_1 != src_0) throw_type(schema, schema.inputs[2], src_1, same);
    if (dst != src_0) throw_type(schema, schema.output, dst, same);
}

dims infer_dst(const select_schema& schema, auto_broadcast broadcast, const dims& cond,
               const dims& src_0, const dims& src_1) {
    if (broadcast == auto_broadcast::none) {
        if (!schema.has_auto_broadcast)
            throw invalid_argument(std::string(schema.dialect) +
                                   " has no attribute auto_broadcast, given is none");
        if (!(cond == src_0 && src_0 == src_1)) throw_not_equal(schema, cond, src_0, src_1);
        return src_0;
    }
    dims dst = broadcast_numpy(src_0, src_1);
    if (schema.rule == broadcast_rule::multidirectional) return broadcast_numpy(cond, dst);
    require_one_way(cond, dst, schema.inputs[0]);
    return dst;
}

} // namespace maskwise
