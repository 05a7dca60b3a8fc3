#include "input/case_reader.hpp"

#include "input/rewrite_text.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <set>
#include <sstream>

namespace maskwise::bench {
namespace {

using nlohmann::json;

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
    // A known shape beside an unknown stride is dense; only a full list is a layout.
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
    for (const auto& [key, value] : entry.at("attrs").items()) {
        // A dump made after partitioning says where each operator went: no attribute of its own.
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

} // namespace maskwise::bench
