#include "schema/select_schema.hpp"

#include "base/error.hpp"
#include "tensor/broadcast.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <string>

namespace maskwise {
namespace {

using enum data_type;
using enum broadcast_rule;

constexpr data_type onednn_types[] = {f32, bf16, f16};
constexpr data_type openvino_types[] = {
#define MASKWISE_OPENVINO_none(name)
#define MASKWISE_OPENVINO_direct(name) name,
#define MASKWISE_OPENVINO_converted(name) name,
#define MASKWISE_DATA_TYPE(name, width, onednn, onnx, onnx_name, ort, openvino)                    \
    MASKWISE_OPENVINO_##openvino(name)
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE
};
constexpr data_type onnx_types[] = {
#define MASKWISE_DATA_TYPE(name, ...) name,
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE
};
constexpr auto onnx_9_types = [] {
    std::array<data_type, std::size(onnx_types) - 1> types{};
    std::ranges::remove_copy(onnx_types, types.begin(), bf16);
    return types;
}();

// In the order of the enumeration `dialect`.
constexpr select_schema schemas[] = {
    // Source: the oneDNN Graph specification, operation Select: signature, T1 boolean, T2 table,
    // and the two-step rule in the text of auto_broadcast.
    {"onednn::Select", {"cond", "src_0", "src_1"}, "dst", onednn_types, true, two_step},
    // Source: OpenVINO's operation set, Select-1: inputs, T any number or boolean type, T_COND
    // boolean, and the two-step rule of attribute auto_broadcast.
    {"openvino::Select-1", {"cond", "then", "else"}, "output", openvino_types, true, two_step},
    // Source: ONNX's operator Where since version 9: type constraints B and T, and multidirectional
    // broadcasting of all three inputs. Version 16 adds bfloat16.
    {"onnx::Where-9", {"condition", "X", "Y"}, "output", onnx_9_types, false, multidirectional},
    {"onnx::Where-16", {"condition", "X", "Y"}, "output", onnx_types, false, multidirectional},
};

[[noreturn]] void throw_type(const select_schema& schema, std::string_view input, data_type actual,
                             const std::string& expected) {
    throw argument_error(std::string(schema.dialect) + ": " + std::string(input) + " is " +
                         std::string(to_string(actual)) + ", expected " + expected);
}

std::string list_types(std::span<const data_type> types) {
    std::string text;
    for (const data_type type : types) {
        if (!text.empty()) text += '|';
        text += to_string(type);
    }
    return text;
}

[[noreturn]] void throw_shapes(const select_schema& schema, const std::string& why,
                               const std::array<const dims*, 3>& shapes) {
    // A shape with a negative extent never broadcasts, so this check finds all negative extents.
    for (std::size_t i = 0; i < shapes.size(); ++i)
        require_no_negative(*shapes[i], schema.dialect, schema.inputs[i]);
    std::string text = std::string(schema.dialect) + ": " + why + ": ";
    for (std::size_t i = 0; i < shapes.size(); ++i)
        text.append(i == 0 ? "" : ", ")
            .append(schema.inputs[i])
            .append(" is ")
            .append(to_string(*shapes[i]));
    throw shape_error(text);
}

// The dialect's names for "src_0 and src_1".
std::string sources_of(const select_schema& schema) {
    return std::string(schema.inputs[1]) + " and " + std::string(schema.inputs[2]);
}

// Returns the shape of dst; nullopt if cond does not broadcast with the sources' common shape.
std::optional<dims> join_cond(broadcast_rule rule, const dims& cond, dims sources) {
    if (rule == multidirectional) return broadcast_numpy(cond, sources);
    if (broadcasts_one_way(cond, sources)) return sources;
    return std::nullopt;
}

} // namespace

std::optional<auto_broadcast> parse_auto_broadcast(std::string_view text) {
    if (text == "none") return auto_broadcast::none;
    if (text == "numpy") return auto_broadcast::numpy;
    return std::nullopt;
}

const select_schema& schema_of(dialect form) {
    const auto number = static_cast<std::size_t>(form);
    if (number < std::size(schemas)) return schemas[number];
    throw argument_error("dialect " + std::to_string(number) + " is unknown");
}

void check_types(const select_schema& schema, data_type cond, data_type src_0, data_type src_1,
                 data_type dst) {
    if (cond != schema.cond_type)
        throw_type(schema, schema.inputs[0], cond, std::string(to_string(schema.cond_type)));
    const auto& legal = schema.value_types;
    if (std::find(legal.begin(), legal.end(), src_0) == legal.end())
        throw_type(schema, schema.inputs[1], src_0, list_types(legal));
    const std::string same =
        std::string(to_string(src_0)) + ", the type of " + std::string(schema.inputs[1]);
    if (src_1 != src_0) throw_type(schema, schema.inputs[2], src_1, same);
    if (dst != src_0) throw_type(schema, schema.output, dst, same);
}

dims infer_dst(const select_schema& schema, auto_broadcast broadcast, const dims& cond,
               const dims& src_0, const dims& src_1) {
    const auto refuse = [&](const std::string& why) {
        throw_shapes(schema, why, {&cond, &src_0, &src_1});
    };
    if (broadcast == auto_broadcast::none) {
        if (!schema.has_auto_broadcast)
            throw argument_error("auto_broadcast is none, expected numpy: " +
                                 std::string(schema.dialect) + " has no such attribute");
        if (cond != src_0 || cond != src_1) refuse("auto_broadcast none needs equal shapes");
        require_no_negative(src_0, schema.dialect, schema.inputs[1]);
        return src_0;
    }
    if (broadcast != auto_broadcast::numpy)
        throw argument_error("auto_broadcast " + std::to_string(static_cast<int>(broadcast)) +
                             " is unknown");
    auto sources = broadcast_numpy(src_0, src_1);
    if (!sources) refuse(sources_of(schema) + " do not broadcast to each other");
    auto dst = join_cond(schema.rule, cond, *std::move(sources));
    if (!dst)
        refuse(std::string(schema.inputs[0]) + " does not broadcast to " + sources_of(schema));
    return *std::move(dst);
}

} // namespace maskwise
