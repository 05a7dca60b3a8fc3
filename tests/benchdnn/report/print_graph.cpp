#include "report/print_graph.hpp"

#include <nlohmann/json.hpp>

namespace maskwise::bench {
namespace {

using json = nlohmann::ordered_json;

const char* type_word(const attribute& value) {
    static constexpr const char* words[] = {"bool", "s64", "f32", "string", "s64[]", "f32[]"};
    return words[value.index()];
}

const char* property_word(property p) {
    static constexpr const char* words[] = {"undef", "variable", "constant", "host_scalar"};
    return words[static_cast<int>(p)];
}

json tensor_json(const logical_tensor& t) {
    const dims unknown{unknown_dim};
    json entry;
    entry["id"] = t.id;
    entry["dtype"] = info(t.dtype).name;
    entry["shape"] = t.rank_known ? t.shape : unknown;
    entry["stride"] = !t.rank_known       ? unknown
                      : t.strides.empty() ? dense_strides(t.shape)
                                          : t.strides;
    entry["layout_type"] = t.layout_kind == layout::any ? "any" : "strided";
    entry["property_type"] = property_word(t.property_kind);
    return entry;
}

json op_json(const op& o) {
    json entry;
    entry["id"] = o.id;
    entry["name"] = o.name;
    entry["kind"] = o.kind;
    entry["attrs"] = json::object();
    for (const auto& [name, value] : o.attrs)
        entry["attrs"][name] = {
            {"type", type_word(value)},
            {"value", std::visit([](const auto& v) { return json(v); }, value)}};
    for (const logical_tensor& t : o.inputs) entry["inputs"].push_back(tensor_json(t));
    for (const logical_tensor& t : o.outputs) entry["outputs"].push_back(tensor_json(t));
    return entry;
}

} // namespace

std::string graph_text(const graph& g) {
    json root;
    root["version"] = "3.13.0";
    root["engine_kind"] = "cpu";
    root["fpmath_mode"] = g.fpmath_mode;
    root["fpmath_mode_apply_to_int"] = g.fpmath_apply_to_int ? "true" : "false";
    root["input_ports"] = graph_inputs(g);
    root["output_ports"] = json::array();
    for (const op& o : g.ops)
        for (const logical_tensor& t : o.outputs)
            if (find_consumers(g, t.id).empty()) root["output_ports"].push_back(t.id);
    for (const op& o : g.ops) root["graph"].push_back(op_json(o));
    return root.dump(2);
}

} // namespace maskwise::bench
