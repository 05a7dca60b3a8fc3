#include "dialect/dialect_case.hpp"

#include "input/rewrite_text.hpp"
#include "support/oracle.hpp"

#include <fmt/format.h>

namespace maskwise::bench {
namespace {

constexpr maskwise::dialect all_dialects[] = {
    maskwise::dialect::onednn_select, maskwise::dialect::openvino_select_1,
    maskwise::dialect::onnx_where_9, maskwise::dialect::onnx_where_16};

// "onnx::Where-16" as "onnx.Where-16".
std::string name_of(maskwise::dialect form) {
    const std::string_view name = maskwise::to_string(form);
    const std::size_t colons = name.find("::");
    return fmt::format("{}.{}", name.substr(0, colons), name.substr(colons + 2));
}

maskwise::dialect find_dialect(const std::string& name) {
    std::vector<std::string> names;
    for (const maskwise::dialect form : all_dialects) {
        if (name_of(form) == name) return form;
        names.push_back(name_of(form));
    }
    throw input_error(fmt::format("--dialect: '{}' is none of {}", name, fmt::join(names, ", ")));
}

maskwise::data_type find_type(const std::string& name) {
    for (int i = 1; i <= static_cast<int>(maskwise::data_type::string); ++i)
        if (maskwise::to_string(static_cast<maskwise::data_type>(i)) == name)
            return static_cast<maskwise::data_type>(i);
    throw input_error(fmt::format("--dt: '{}' is no type of the dialects", name));
}

dialect_operand& operand_of(dialect_case& c, std::size_t id, const char* flag) {
    if (id < c.inputs.size()) return c.inputs[id];
    if (id > c.inputs.size()) throw input_error(fmt::format("--{}: no tensor {}", flag, id));
    if (!c.dst) c.dst = dialect_operand{c.inputs[1].type, {}, {}};
    return *c.dst;
}

void read_types(dialect_case& c, const std::string& text) {
    c.inputs[0].type = maskwise::data_type::boolean;
    if (text.empty()) return;
    if (text.find(':') == std::string::npos) {
        c.inputs[1].type = c.inputs[2].type = find_type(text);
        return;
    }
    for (const auto& [id, name] : parse_pairs(text, "dt"))
        operand_of(c, id, "dt").type = find_type(name);
}

void read_shapes(dialect_case& c, const std::string& text) {
    for (const auto& [id, layout] : parse_shapes(text)) {
        dialect_operand& operand = operand_of(c, id, "in-shapes");
        if (layout.shape) operand.shape = *layout.shape;
        operand.strides = layout.strides;
        if (!layout.tag.empty()) operand.strides = strides_of_tag(operand.shape, layout.tag);
    }
    for (std::size_t id = 0; id <= c.inputs.size(); ++id) {
        if (id == c.inputs.size() && !c.dst) break;
        dialect_operand& operand = operand_of(c, id, "in-shapes");
        if (operand.strides.empty()) operand.strides = dense_strides(operand.shape);
        if (operand.strides.size() != operand.shape.size())
            throw input_error(fmt::format("--in-shapes: tensor {} has {} strides for {}", id,
                                          operand.strides.size(), to_text(operand.shape)));
    }
}

void read_attributes(dialect_case& c, const std::string& text) {
    for (const auto& [id, list] : parse_pairs(text, "op-attrs")) {
        for (const auto& [name, value] : parse_attrs(list)) {
            const auto* word = std::get_if<std::string>(&value);
            if (id != 0 || name != "auto_broadcast" || (*word != "none" && *word != "numpy"))
                throw input_error("--op-attrs: a dialect takes 0:auto_broadcast:none or numpy");
            if (*word == "none") c.broadcast = maskwise::auto_broadcast::none;
        }
    }
}

} // namespace

dialect_case read_dialect_case(const case_config& config) {
    if (!config.op_kind.empty() || !config.tensor_property.empty() || config.mb != 0 ||
        !config.owner.empty() || config.in_place)
        throw input_error("--op-kind, --tensor-property, --mb, --owner and --in-place are for "
                          "graphs, not for dialects");
    dialect_case c{find_dialect(config.dialect), maskwise::auto_broadcast::numpy, {}, {}};
    read_types(c, config.dt);
    read_shapes(c, config.in_shapes);
    read_attributes(c, config.op_attrs);
    return c;
}

std::optional<dims> expected_shape(const dialect_case& c) {
    const dims &cond = c.inputs[0].shape, &src_0 = c.inputs[1].shape, &src_1 = c.inputs[2].shape;
    if (c.broadcast == maskwise::auto_broadcast::none)
        return cond == src_0 && src_0 == src_1 ? std::optional(src_0) : std::nullopt;
    return test::select_shape(cond, src_0, src_1,
                              c.form == maskwise::dialect::onnx_where_9 ||
                                  c.form == maskwise::dialect::onnx_where_16);
}

maskwise::tensor_desc describe(const dialect_operand& operand) {
    maskwise::tensor_desc desc{operand.type, maskwise::dims(operand.shape), {}};
    const auto width = static_cast<std::int64_t>(maskwise::width_bytes(operand.type));
    for (const std::int64_t stride : operand.strides) desc.strides_bytes.push_back(stride * width);
    return desc;
}

} // namespace maskwise::bench
