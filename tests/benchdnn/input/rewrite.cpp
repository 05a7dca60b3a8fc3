#include "input/rewrite.hpp"

#include "input/rewrite_text.hpp"
#include "model/infer_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace maskwise::bench {
namespace {

op& op_by_id(graph& g, std::size_t id) {
    for (op& o : g.ops)
        if (o.id == id) return o;
    throw input_error(fmt::format("the graph has no op {}", id));
}

void require_tensor(const graph& g, std::size_t id) {
    if (!find_tensor(g, id)) throw input_error(fmt::format("the graph has no tensor {}", id));
}

template <typename Change>
void change_tensor(graph& g, std::size_t id, Change change) {
    require_tensor(g, id);
    for_each_tensor(g, [&](logical_tensor& t) {
        if (t.id == id) change(t);
    });
}

// Removes the op. Its consumers then read the op's first input instead of its outputs.
void remove_op(graph& g, std::size_t id) {
    const op removed = op_by_id(g, id);
    if (removed.inputs.empty()) throw input_error(fmt::format("op {} has no input", id));
    std::erase_if(g.ops, [id](const op& o) { return o.id == id; });
    if (g.ops.empty()) throw input_error(fmt::format("removing op {} leaves no op", id));
    for (op& o : g.ops)
        for (logical_tensor& t : o.inputs)
            for (const logical_tensor& gone : removed.outputs)
                if (t.id == gone.id) t = removed.inputs[0];
}

void rewrite_kinds(graph& g, const std::string& text) {
    for (const auto& [id, kind] : parse_pairs(text, "op-kind")) {
        if (kind == "undef") {
            remove_op(g, id);
            continue;
        }
        if (!find_op_kind(kind)) throw input_error(fmt::format("unknown kind '{}'", kind));
        op_by_id(g, id).kind = kind;
    }
}

void rewrite_attrs(graph& g, const std::string& text) {
    for (const auto& [id, list] : parse_pairs(text, "op-attrs")) {
        op& o = op_by_id(g, id);
        for (const auto& [name, value] : parse_attrs(list)) o.attrs[name] = value;
    }
}

void set_shape(logical_tensor& t, const shape_text& shape) {
    if (shape.shape) {
        t.shape = *shape.shape;
        t.rank_known = true;
        t.strides.clear();
    }
    if (!shape.tag.empty()) t.strides = strides_of_tag(t.shape, shape.tag);
    if (!shape.strides.empty()) t.strides = shape.strides;
    if (!t.strides.empty() && t.strides.size() != t.shape.size())
        throw input_error(fmt::format("tensor {}: {} strides for rank {}", t.id, t.strides.size(),
                                      t.shape.size()));
}

// Sets the leading extent to `mb` for each input of rank 2 or more whose leading extent is the
// largest. Inputs with a smaller leading extent are broadcast.
void rewrite_mb(graph& g, std::int64_t mb) {
    std::int64_t largest = 0;
    for (const std::size_t id : graph_inputs(g)) {
        const logical_tensor& t = *find_tensor(g, id);
        if (t.shape.size() > 1) largest = std::max(largest, t.shape[0]);
    }
    for (const std::size_t id : graph_inputs(g))
        change_tensor(g, id, [&](logical_tensor& t) {
            if (t.shape.size() < 2 || t.shape[0] != largest) return;
            t.shape[0] = mb;
            if (t.strides.empty()) return;
            // The stride of a leading extent of 1 is arbitrary, but the new entries must not
            // overlap.
            std::int64_t entry = 1;
            for (std::size_t i = 1; i < t.shape.size(); ++i)
                entry += (t.shape[i] - 1) * t.strides[i];
            t.strides[0] = std::max(t.strides[0], entry);
        });
}

// oneDNN's batches name tensors that their graphs lack. oneDNN's driver ignores these tensors, too.
std::vector<std::pair<std::size_t, shape_text>> shapes_of_graph(const graph& g,
                                                                const case_config& config) {
    auto shapes = parse_shapes(config.in_shapes);
    std::erase_if(shapes, [&](const auto& entry) {
        const bool is_lacking = !find_tensor(g, entry.first);
        if (is_lacking)
            fmt::print(stderr, "maskwise-bench: {}: --in-shapes: ignored: no tensor {}\n",
                       config.file, entry.first);
        return is_lacking;
    });
    return shapes;
}

void rewrite_shapes(graph& g, const case_config& config) {
    const auto shapes = shapes_of_graph(g, config);
    std::set<std::size_t> known_outputs;
    for (const auto& [id, shape] : shapes)
        if (!find_producer(g, id)) {
            change_tensor(g, id, [s = shape](logical_tensor& t) { set_shape(t, s); });
        } else if (shape.shape) {
            known_outputs.insert(id);
        }
    if (config.mb > 0) rewrite_mb(g, config.mb);
    // If no option changed a shape, an attribute or an op, the file's output shapes stay.
    if (config.mb > 0 || !shapes.empty() || !config.op_attrs.empty() || !config.op_kind.empty())
        infer_graph(g, known_outputs);
    for (const auto& [id, shape] : shapes)
        if (find_producer(g, id))
            change_tensor(g, id, [s = shape](logical_tensor& t) { set_shape(t, s); });
}

void rewrite_fpmath(graph& g, const std::string& text) {
    if (text.empty()) return;
    const std::size_t colon = text.find(':');
    g.fpmath_mode = text.substr(0, colon);
    g.fpmath_apply_to_int = colon != std::string::npos && text.substr(colon + 1) == "true";
    static const std::set<std::string> modes{"strict", "bf16", "f16", "any", "tf32"};
    if (modes.count(g.fpmath_mode) == 0)
        throw input_error(fmt::format("unknown fpmath mode '{}'", g.fpmath_mode));
}

data_type parse_type(const std::string& word) {
    const data_type_info* type = find_data_type(word);
    if (!type) throw input_error(fmt::format("unknown type '{}'", word));
    return type->value;
}

void rewrite_uniform_type(graph& g, data_type type) {
    for (const char* kind :
         {"TypeCast", "Quantize", "Dequantize", "DynamicQuantize", "DynamicDequantize"})
        if (has_op(g, kind))
            throw input_error(fmt::format("--dt with one type does not fit a graph with {}", kind));
    std::set<std::size_t> statistics; // SoftMax's statistics are f32 for any data type
    for (const op& o : g.ops)
        if (o.kind == "SoftMax" && o.outputs.size() > 1) statistics.insert(o.outputs[1].id);
    for_each_tensor(g, [&](logical_tensor& t) {
        // Host scalars keep their types (f32, s32, s64).
        const bool data = t.property_kind != property::host_scalar && statistics.count(t.id) == 0;
        if (data && is_floating(t.dtype)) t.dtype = type;
    });
}

void rewrite_types(graph& g, const std::string& text) {
    if (text.empty()) return;
    if (text.find(':') == std::string::npos) return rewrite_uniform_type(g, parse_type(text));
    for (const auto& [id, word] : parse_pairs(text, "dt"))
        change_tensor(g, id, [w = word](logical_tensor& t) { t.dtype = parse_type(w); });
}

void rewrite_properties(graph& g, const std::string& text) {
    for (const auto& [id, word] : parse_pairs(text, "tensor-property"))
        change_tensor(g, id,
                      [w = word](logical_tensor& t) { t.property_kind = parse_property(w); });
}

} // namespace

void rewrite(graph& g, const case_config& config) {
    try {
        rewrite_kinds(g, config.op_kind);
        rewrite_attrs(g, config.op_attrs);
        rewrite_shapes(g, config);
        rewrite_fpmath(g, config.attr_fpmath);
        rewrite_types(g, config.dt);
        rewrite_properties(g, config.tensor_property);
    } catch (const input_error& error) {
        throw input_error(fmt::format("{}: {}", config.file, error.what()));
    }
}

} // namespace maskwise::bench
