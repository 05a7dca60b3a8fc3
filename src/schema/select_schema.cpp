#include "schema/select_schema.hpp"

#include "base/error.hpp"
#include "tensor/broadcast.hpp"
#include "tensor/tensor_desc.hpp"

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

[[noreturn]] void throw_shapes(const select_schema& schema, const std::string& why,
                               const std::array<const dims*, 3>& shapes) {
    // With a negative extent shapes never fit, so nobody looks for one before.
    for (std::size_t i = 0; i < shapes.size(); ++i)
        require_no_negative(*shapes[i], schema.dialect, schema.inputs[i]);
    std::string text = std::string(schema.dialect) + ": " + why + ": ";
    for (std::size_t i = 0; i < shapes.size(); ++i)
        text.append(i == 0 ? "" : ", ")
            .append(schema.inputs[i])
            .append(" is ")
            .append(to_string(*shapes[i]));
    throw invalid_shape(text);
}

// "src_0 and src_1", in the dialect's words.
std::string sources_of(const select_schema& schema) {
    return std::string(schema.inputs[1]) + " and " + std::string(schema.inputs[2]);
}

// nullopt where cond does not fit the shape that the sources have together.
std::optional<dims> join_cond(broadcast_rule rule, const dims& cond, dims sources) {
    if (rule == broadcast_rule::multidirectional) return broadcast_numpy(cond, sources);
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
    const auto refuse = [&](const std::string& why) {
        throw_shapes(schema, why, {&cond, &src_0, &src_1});
    };
    if (broadcast == auto_broadcast::none) {
        if (!schema.has_auto_broadcast)
            throw invalid_argument(
                std::string(schema.dialect) +
                " has no attribute auto_broadcast: given is none, expected numpy");
        if (cond != src_0 || cond != src_1) refuse("auto_broadcast none needs equal shapes");
        require_no_negative(src_0, schema.dialect, schema.inputs[1]);
        return src_0;
    }
    if (broadcast != auto_broadcast::numpy)
        throw invalid_argument("auto_broadcast " + std::to_string(static_cast<int>(broadcast)) +
                               " is unknown");
    auto sources = broadcast_numpy(src_0, src_1);
    if (!sources) refuse(sources_of(schema) + " do not broadcast to each other");
    auto dst = join_cond(schema.rule, cond, *std::move(sources));
    if (!dst)
        refuse(std::string(schema.inputs[0]) + " does not broadcast to " + sources_of(schema));
    return *std::move(dst);
}

} // namespace maskwise
