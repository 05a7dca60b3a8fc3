#include "onednn/partition/dump.hpp"

#include "base/environment.hpp"
#include "base/verbose.hpp"
#include "onednn/library/find_onednn.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/partition/merged_partitions.hpp"
#include "onednn/record/names.hpp"
#include "onednn/record/tables.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <unistd.h>

namespace maskwise::onednn {
namespace {

struct owner {
    std::size_t partition;
    const char* backend;
};
using owners = std::map<std::size_t, owner>; // by operator id

owners owners_of(std::span<const abi::partition> partitions) {
    owners result;
    for (abi::partition partition : partitions) {
        const bool is_claimed = tables().claims.find(partition) != nullptr;
        owner entry{0, is_claimed ? "maskwise" : "onednn"};
        real_partition_get_id(partition, &entry.partition);
        const auto* const merged = find_merged(partition);
        for (const std::size_t id : merged != nullptr ? merged->op_ids : op_ids(partition))
            result.emplace(id, entry);
    }
    return result;
}

// JSON is UTF-8, but names may hold any bytes. A byte outside ASCII becomes the \u escape with its
// value.
std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        char escaped[8] = {c};
        if (c == '"' || c == '\\' || byte < 0x20 || byte >= 0x7f)
            std::snprintf(escaped, sizeof escaped, "\\u%04x", unsigned{byte});
        result += escaped;
    }
    return result + '"';
}

// JSON lacks infinity and NaN. Infinity becomes 1e39, which reads back as infinity in f32. NaN
// becomes null. The decimal separator is a point in every locale.
std::string number_text(float value) {
    if (std::isnan(value)) return "null";
    if (std::isinf(value)) return value < 0 ? "-1e39" : "1e39";
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
    std::replace(text, text + std::strlen(text), ',', '.');
    return text;
}

std::string number_text(std::int64_t value) {
    return std::to_string(value);
}

std::string number_text(std::size_t value) {
    return std::to_string(value);
}

template <class Numbers>
std::string list_text(const Numbers& numbers) {
    std::string text = "[";
    for (const auto number : numbers) text += (text.size() > 1 ? ", " : "") + number_text(number);
    return text + ']';
}

std::string typed(const std::string& name, const char* type, const std::string& value) {
    return quoted(name) + R"(: {"type": ")" + type + R"(", "value": )" + value + '}';
}

template <class Number>
std::string numbers_text(const attribute_words& words, const char* type,
                         const std::vector<Number>& values) {
    if (!words.is_list && values.size() == 1)
        return typed(words.name, type, number_text(values[0]));
    return typed(words.name, (std::string(type) + "[]").c_str(), list_text(values));
}

std::string attribute_text(int number, const attribute& value) {
    const auto words = words_of_attribute(number);
    if (const auto* const floats = std::get_if<std::vector<float>>(&value))
        return numbers_text(words, "f32", *floats);
    if (const auto* const integers = std::get_if<std::vector<std::int64_t>>(&value))
        return numbers_text(words, "s64", *integers);
    if (const auto* const text = std::get_if<std::string>(&value))
        return typed(words.name, "string", quoted(*text));
    return typed(words.name, "bool", std::get<bool>(value) ? "1" : "0");
}

using numbers = std::span<const std::int64_t>;

std::string tensor_text(const abi::logical_tensor& tensor) {
    const numbers unknown(&abi::unknown_dim, 1);
    const bool has_rank = tensor.ndims >= 0 && tensor.ndims <= abi::max_ndims;
    const auto rank = static_cast<std::size_t>(has_rank ? tensor.ndims : 0);
    const numbers extents(tensor.dims, rank), strides(tensor.layout.strides, rank);
    const bool is_strided = has_rank && tensor.layout_type == abi::layout_strided &&
                            std::ranges::find(strides, abi::unknown_dim) == strides.end();
    const char* const layout = tensor.layout_type == abi::layout_any ? "any" : "strided";
    return R"({"id": )" + std::to_string(tensor.id) + R"(, "dtype": )" +
           quoted(data_type_name(tensor.data_type)) + R"(, "shape": )" +
           list_text(has_rank ? extents : unknown) + R"(, "stride": )" +
           list_text(is_strided ? strides : unknown) + R"(, "layout_type": )" + quoted(layout) +
           R"(, "property_type": )" + quoted(property_name(tensor.property)) + '}';
}

template <class Items, class Text>
std::string joined(const Items& items, const char* separator, Text&& text) {
    std::string result;
    for (const auto& item : items) result += (result.empty() ? "" : separator) + text(item);
    return result;
}

std::string operator_text(const op_record& op, const owners& owned_by) {
    std::string attributes = joined(op.attributes, ", ", [](const auto& pair) {
        return attribute_text(pair.first, pair.second);
    });
    if (const auto owned = owned_by.find(op.id); owned != owned_by.end()) {
        if (!attributes.empty()) attributes += ", ";
        attributes +=
            typed("partition_id", "string", quoted(std::to_string(owned->second.partition)));
        attributes += ", " + typed("backend", "string", quoted(owned->second.backend));
    }
    return R"({"id": )" + std::to_string(op.id) + R"(, "name": )" + quoted(op.name) +
           R"(, "kind": )" + quoted(operator_name(op.kind)) + ",\n  \"attrs\": {" + attributes +
           "},\n  \"inputs\": [" + joined(op.inputs, ",\n   ", tensor_text) +
           "],\n  \"outputs\": [" + joined(op.outputs, ",\n   ", tensor_text) + "]}";
}

// Returns ids of inputs that no operator makes, or of outputs that no operator reads, each once.
std::vector<std::size_t> ports(const op_list& ops, bool of_inputs) {
    std::vector<std::size_t> ids, others;
    for (const auto& op : ops) {
        for (const auto& tensor : op->inputs) (of_inputs ? ids : others).push_back(tensor.id);
        for (const auto& tensor : op->outputs) (of_inputs ? others : ids).push_back(tensor.id);
    }
    std::vector<std::size_t> result;
    for (const std::size_t id : ids)
        if (std::ranges::find(others, id) == others.end() &&
            std::ranges::find(result, id) == result.end())
            result.push_back(id);
    return result;
}

std::string graph_text(const graph_record& graph, const owners& owned_by) {
    const auto& settings = graph.settings;
    return "{\"version\": " + quoted(to_string(real().version)) + ",\n\"engine_kind\": " +
           quoted(settings.engine_kind == abi::engine_cpu ? "cpu" : "gpu") +
           ",\n\"fpmath_mode\": " + quoted(fpmath_name(settings.fpmath_mode)) +
           ",\n\"fpmath_mode_apply_to_int\": " +
           quoted(settings.fpmath_applies_to_int ? "true" : "false") +
           ",\n\"input_ports\": " + list_text(ports(graph.ops, true)) +
           ",\n\"output_ports\": " + list_text(ports(graph.ops, false)) + ",\n\"graph\": [\n " +
           joined(graph.ops, ",\n ", [&](const auto& op) { return operator_text(*op, owned_by); }) +
           "]}\n";
}

std::string_view folder() {
    return read_environment("MASKWISE_DUMP").value_or("");
}

// The path has the process id, because processes may share the folder.
std::string next_path() {
    static std::atomic<unsigned> count{0};
    return std::string(folder()) + "/graph-" + std::to_string(getpid()) + '-' +
           std::to_string(count.fetch_add(1)) + ".json";
}

void write(const std::string& path, const std::string& text) {
    std::FILE* const file = std::fopen(path.c_str(), "wex");
    bool is_written = file != nullptr && std::fputs(text.c_str(), file) >= 0;
    if (file != nullptr) is_written = std::fclose(file) == 0 && is_written;
    if (!is_written) print_verbose("dump," + path + ',' + std::strerror(errno));
}

} // namespace

bool dump_is_wanted(const graph_record& graph) {
    return graph.has_select && !folder().empty();
}

void dump_graph(const graph_record& graph, std::span<const abi::partition> partitions) {
    write(next_path(), graph_text(graph, owners_of(partitions)));
}

} // namespace maskwise::onednn
