#include "input/case_reader.hpp"

#include "input/rewrite_text.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <set>
#include <sstream>

namespace maskwise::bench {
namespace {

using nlohmann::json, nlohmann::ordered_json;

attribute read_attribute(const std::string& key, const json& entry) {
    const std::string type = entry.at("type").get<std::string>();
    const json& value = entry.at("value");
    // Older dumps write booleans as 0 and 1.
    if (type == "bool") return value.is_number() ? value.get<int>() != 0 : value.get<bool>();
    if (type == "string") return value.get<std::string>();
    if (type == "s64") return value.get<std::int64_t>();
    if (type == "s64[]") return value.get<std::vector<std::int64_t>>();
    if (type == "f32") return value.get<float>();
    if (type == "f32[]") return value.get<std::vector<float>>();
    throw input_error("attribute '" + key + "' has the unknown type '" + type + "'");
}

bool is_unknown(const dims& d) {
    return d.size() == 1 && d[0] == unknown_dim;
}

logical_tensor read_tensor(const json& entry) {
    logical_tensor t;
    t.id = entry.at("id").get<std::size_t>();
    const std::string dtype = entry.at("dtype").get<std::string>();
    const data_type_info* type = find_data_type(dtype);
    if (!type)
        throw input_error("tensor " + std::to_string(t.id) + ": unknown dtype '" + dtype + "'");
    t.dtype = type->value;
    t.shape = entry.at("shape").get<dims>();
    t.rank_known = !is_unknown(t.shape);
    if (!t.rank_known) t.shape.clear();
    t.strides = entry.at("stride").get<dims>();
    // Unknown strides mean a dense layout.
    if (is_unknown(t.strides) || !t.rank_known) t.strides.clear();
    if (!t.strides.empty() && t.strides.size() != t.shape.size())
        throw input_error("tensor " + std::to_string(t.id) + ": " +
                          std::to_string(t.strides.size()) + " strides for a shape of rank " +
                          std::to_string(t.shape.size()));
    if (entry.at("layout_type").get<std::string>() == "any") t.layout_kind = layout::any;
    t.property_kind = parse_property(entry.at("property_type").get<std::string>());
    return t;
}

op read_op(const json& entry) {
    op o;
    o.id = entry.at("id").get<std::size_t>();
    o.name = entry.value("name", "");
    o.kind = entry.at("kind").get<std::string>();
    if (!find_op_kind(o.kind))
        throw input_error("op " + std::to_string(o.id) + ": unknown kind '" + o.kind + "'");
    const json attributes = entry.value("attrs", json::object());
    for (const auto& [key, value] : attributes.items()) {
        // A dump after partitioning also lists each operator's partition and backend here.
        if (key == "partition_id" || key == "backend") continue;
        if (!find_attr(key))
            throw input_error("op " + std::to_string(o.id) + ": unknown attribute '" + key + "'");
        o.attrs.emplace(key, read_attribute(key, value));
    }
    for (const json& t : entry.at("inputs")) o.inputs.push_back(read_tensor(t));
    for (const json& t : entry.at("outputs")) o.outputs.push_back(read_tensor(t));
    return o;
}

void check_ids(const graph& g) {
    std::set<std::size_t> ops;
    std::set<std::size_t> produced;
    for (const op& o : g.ops) {
        if (!ops.insert(o.id).second)
            throw input_error("op id " + std::to_string(o.id) + " appears twice");
        for (const logical_tensor& t : o.outputs)
            if (!produced.insert(t.id).second)
                throw input_error("tensor " + std::to_string(t.id) + " has two producers");
    }
    if (g.ops.empty()) throw input_error("the graph has no op");
}

const char* type_word(const attribute& value) {
    static constexpr const char* words[] = {"bool", "s64", "f32", "string", "s64[]", "f32[]"};
    return words[value.index()];
}

const char* property_word(property p) {
    static constexpr const char* words[] = {"undef", "variable", "constant", "host_scalar"};
    return words[static_cast<int>(p)];
}

ordered_json tensor_json(const logical_tensor& t) {
    const dims unknown{unknown_dim};
    ordered_json entry;
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

ordered_json op_json(const op& o) {
    ordered_json entry;
    entry["id"] = o.id;
    entry["name"] = o.name;
    entry["kind"] = o.kind;
    entry["attrs"] = ordered_json::object();
    for (const auto& [name, value] : o.attrs)
        entry["attrs"][name] = {
            {"type", type_word(value)},
            {"value", std::visit([](const auto& v) { return ordered_json(v); }, value)}};
    for (const logical_tensor& t : o.inputs) entry["inputs"].push_back(tensor_json(t));
    for (const logical_tensor& t : o.outputs) entry["outputs"].push_back(tensor_json(t));
    return entry;
}

} // namespace

graph parse_case(const std::string& text, const std::string& name) {
    try {
        const json root = json::parse(text);
        graph g;
        g.fpmath_mode = root.value("fpmath_mode", "strict");
        g.fpmath_apply_to_int = root.value("fpmath_mode_apply_to_int", "false") == "true";
        for (const json& entry : root.at("graph")) g.ops.push_back(read_op(entry));
        check_ids(g);
        sort_topologically(g);
        return g;
    } catch (const json::exception& error) {
        const std::string reason = error.what(); // "[json.exception.KIND.NUMBER] ..."
        throw input_error(name + ": not a case: " + reason.substr(reason.find(']') + 2));
    } catch (const input_error& error) {
        throw input_error(name + ": " + error.what());
    }
}

graph read_case(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw input_error("cannot open case file '" + path + "'");
    std::stringstream text;
    text << file.rdbuf();
    return parse_case(text.str(), path);
}

std::string graph_text(const graph& g) {
    ordered_json root;
    root["version"] = "3.13.0";
    root["engine_kind"] = "cpu";
    root["fpmath_mode"] = g.fpmath_mode;
    root["fpmath_mode_apply_to_int"] = g.fpmath_apply_to_int ? "true" : "false";
    root["input_ports"] = graph_inputs(g);
    root["output_ports"] = ordered_json::array();
    for (const op& o : g.ops)
        for (const logical_tensor& t : o.outputs)
            if (find_consumers(g, t.id).empty()) root["output_ports"].push_back(t.id);
    for (const op& o : g.ops) root["graph"].push_back(op_json(o));
    return root.dump(2);
}

} // namespace maskwise::bench
