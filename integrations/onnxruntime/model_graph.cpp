#include "model_graph.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace maskwise::ort {
namespace {

const node no_node;
const value no_value = [] {
    value none;
    none.producer = &no_node;
    return none;
}();

// Operators of com.microsoft that claims recognize by name. A model may define its own function
// with this domain and one of these names, so no claim relies on such a node's result. In ONNX's
// domain, a name always means ONNX's operator.
constexpr std::string_view microsoft_operators[] = {"DequantizeLinear", "FusedMatMul",
                                                    "QuantizeLinear"};

bool is_microsoft_operator(std::string_view type) {
    return std::ranges::find(microsoft_operators, type) != std::end(microsoft_operators) ||
           type.find("Attention") != std::string_view::npos;
}

template <class Function, class Object>
std::string_view text(Function function, Object object) {
    const char* characters = nullptr;
    check(function(object, &characters));
    return characters == nullptr ? "" : characters;
}

template <class Item, class Count, class Get, class Object>
std::vector<Item> list(Count count_of, Get get, Object object) {
    std::size_t count = 0;
    check(count_of(object, &count));
    std::vector<Item> items(count);
    check(get(object, items.data(), count));
    return items;
}

using value_infos = std::vector<const OrtValueInfo*>;

value_infos inputs_of(const runtime& api, const OrtNode* handle) {
    return list<const OrtValueInfo*>(api.Node_GetNumInputs, api.Node_GetInputs, handle);
}

value_infos outputs_of(const runtime& api, const OrtNode* handle) {
    return list<const OrtValueInfo*>(api.Node_GetNumOutputs, api.Node_GetOutputs, handle);
}

std::string_view name_of(const runtime& api, const OrtValueInfo* handle) {
    return handle == nullptr ? "" : text(api.GetValueInfoName, handle);
}

std::string_view operator_of(const runtime& api, const OrtNode* handle) {
    const std::string_view type = text(api.Node_GetOperatorType, handle);
    const std::string_view domain = text(api.Node_GetDomain, handle);
    const bool is_microsoft = domain == microsoft_domain && is_microsoft_operator(type);
    return is_microsoft || domain.empty() || domain == "ai.onnx" ? type : "";
}

void read_type(const runtime& api, value& value) {
    const OrtTypeInfo* type = nullptr;
    const OrtTensorTypeAndShapeInfo* tensor = nullptr;
    check(api.GetValueInfoTypeInfo(value.handle, &type));
    if (type != nullptr) check(api.CastTypeInfoToTensorInfo(type, &tensor));
    if (tensor == nullptr) return;
    ONNXTensorElementDataType element{};
    check(api.GetTensorElementType(tensor, &element));
    value.type = type_of(element);
    if (!api.TensorTypeAndShape_HasShape(tensor)) return;
    std::size_t rank = 0;
    check(api.GetDimensionsCount(tensor, &rank));
    value.has_too_many_dims = rank > max_rank;
    if (value.has_too_many_dims) return;
    value.extents = dims::filled(static_cast<int>(rank), -1);
    check(api.GetDimensions(tensor, value.extents->begin(), rank));
}

// Whether the graph is the body of a Loop. A Loop's values may change shape and rank between
// iterations, despite the shapes that the body states.
bool is_body_of_loop(const runtime& api, const OrtGraph* graph) {
    const OrtNode* parent = nullptr;
    check(api.Graph_GetParentNode(graph, &parent));
    return parent != nullptr && operator_of(api, parent) == "Loop";
}

} // namespace

const node& value::only_reader() const {
    return readers.size() == 1 ? *readers[0].node : no_node;
}

bool value::is_one_element() const {
    return extents &&
           std::ranges::all_of(*extents, [](std::int64_t extent) { return extent == 1; });
}

// Returns the element of a one-element constant. Returns null for other values, and if ONNX Runtime
// does not expose the constant's elements.
const void* value::element() const {
    const OrtValue* constant = nullptr;
    const void* data = nullptr;
    if (!is_constant || !is_one_element()) return nullptr;
    check(api->ValueInfo_GetInitializerValue(handle, &constant));
    if (constant != nullptr) check(api->GetTensorData(constant, &data));
    return data;
}

bool value::is_zero() const {
    constexpr std::byte zeros[sizeof(double)] = {};
    const void* const data = element();
    return data != nullptr && extents->rank() <= 1 && width_bytes(type) <= sizeof(zeros) &&
           std::memcmp(data, zeros, width_bytes(type)) == 0;
}

std::optional<float> value::number() const {
    const void* const data = type == data_type::f32 ? element() : nullptr;
    return data == nullptr ? std::nullopt : std::optional(*static_cast<const float*>(data));
}

bool node::is_one_of(operator_names names) const {
    return std::ranges::find(names, type) != names.end();
}

const value& node::input(std::size_t index) const {
    return index < inputs.size() ? *inputs[index] : no_value;
}

const value& node::result() const {
    return outputs.empty() ? no_value : *outputs[0];
}

bool node::is_complete() const {
    const auto is_there = [](const value* each) { return each->handle != nullptr; };
    return is_there(&result()) && std::ranges::all_of(inputs, is_there);
}

bool node::has_too_many_dims() const {
    const auto has = [](const value* each) { return each->has_too_many_dims; };
    return std::ranges::any_of(inputs, has) || std::ranges::any_of(outputs, has);
}

std::vector<model_graph> node::graphs() const {
    std::size_t count = 0;
    check(api->Node_GetNumSubgraphs(handle, &count));
    std::vector<const OrtGraph*> handles(count);
    if (count != 0) check(api->Node_GetSubgraphs(handle, handles.data(), count, nullptr));
    std::vector<model_graph> graphs;
    graphs.reserve(count);
    for (const OrtGraph* const graph : handles) graphs.emplace_back(*api, graph);
    return graphs;
}

template <class Number>
std::optional<std::vector<Number>> node::attribute(const char* attribute_name,
                                                   OrtOpAttrType kind) const {
    const OrtOpAttr* attribute = nullptr;
    // Fails if the operator has no such attribute in this version of ONNX Runtime.
    OrtStatus* const unknown = api->Node_GetAttributeByName(handle, attribute_name, &attribute);
    if (unknown != nullptr) api->ReleaseStatus(unknown);
    if (attribute == nullptr) return std::nullopt;
    std::vector<Number> numbers(1);
    std::size_t bytes = 0; // of the whole value, even if `numbers` is too short
    const auto read = [&] {
        return api->ReadOpAttr(attribute, kind, numbers.data(), sizeof(Number) * numbers.size(),
                               &bytes);
    };
    OrtStatus* const status = read();
    numbers.resize(bytes / sizeof(Number));
    if (status != nullptr) {
        api->ReleaseStatus(status);
        check(read());
    }
    return numbers;
}
template std::optional<std::vector<float>> node::attribute(const char*, OrtOpAttrType) const;
template std::optional<std::vector<std::int64_t>> node::attribute(const char*, OrtOpAttrType) const;

std::int64_t node::integer(const char* attribute_name, std::int64_t fallback) const {
    const auto numbers = attribute<std::int64_t>(attribute_name, ORT_OP_ATTR_INT);
    return numbers ? numbers->front() : fallback;
}

std::vector<std::pair<std::string_view, std::int64_t>> node::integers() const {
    std::vector<std::pair<std::string_view, std::int64_t>> result;
    for (const auto* attribute :
         list<const OrtOpAttr*>(api->Node_GetNumAttributes, api->Node_GetAttributes, handle)) {
        OrtOpAttrType kind{};
        check(api->OpAttr_GetType(attribute, &kind));
        if (kind != ORT_OP_ATTR_INT) continue;
        std::int64_t number = 0;
        std::size_t bytes = 0;
        check(api->ReadOpAttr(attribute, kind, &number, sizeof(number), &bytes));
        result.emplace_back(text(api->OpAttr_GetName, attribute), number);
    }
    return result;
}

float node::number(const char* attribute_name, float fallback) const {
    const auto numbers = attribute<float>(attribute_name, ORT_OP_ATTR_FLOAT);
    return numbers ? numbers->front() : fallback;
}

model_graph::model_graph(const runtime& api, const OrtGraph* handle) : api_(api) {
    const auto nodes = list<const OrtNode*>(api.Graph_GetNumNodes, api.Graph_GetNodes, handle);
    nodes_.resize(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        node& node = nodes_[i];
        node.api = &api;
        node.handle = nodes[i];
        node.type = operator_of(api, nodes[i]);
        node.name = text(api.Node_GetName, nodes[i]);
        node.provider = text(api.Node_GetEpName, nodes[i]);
        node.is_microsoft = text(api.Node_GetDomain, nodes[i]) == microsoft_domain;
        check(api.Node_GetSinceVersion(nodes[i], &node.since_version));
    }
    for (node& node : nodes_) read_values(node);
    for (const auto* output :
         list<const OrtValueInfo*>(api.Graph_GetNumOutputs, api.Graph_GetOutputs, handle))
        find_value(output).is_output = true;
    if (!is_body_of_loop(api, handle)) return;
    for (auto& [_, value] : values_)
        if (!value.is_constant) value.extents = std::nullopt;
}

// Collects producers and readers of values from the nodes. ONNX Runtime's functions for producers
// and readers (1.24 to 1.32) crash for values of an outer graph and inside inner graphs.
void model_graph::read_values(node& node) {
    for (const auto* info : inputs_of(api_, node.handle)) {
        value& read = find_value(info);
        if (info != nullptr)
            read.readers.push_back({&node, static_cast<std::int64_t>(node.inputs.size())});
        node.inputs.push_back(&read);
    }
    for (const auto* info : list<const OrtValueInfo*>(api_.Node_GetNumImplicitInputs,
                                                      api_.Node_GetImplicitInputs, node.handle))
        find_value(info).readers.push_back({&node, -1});
    for (const auto* info : outputs_of(api_, node.handle)) {
        value& written = find_value(info);
        if (info != nullptr) written.producer = &node;
        node.outputs.push_back(&written);
    }
}

value& model_graph::find_value(const OrtValueInfo* handle) {
    const auto [entry, is_new] = values_.try_emplace(handle, no_value);
    value& value = entry->second;
    if (!is_new || handle == nullptr) return value;
    value.api = &api_;
    value.handle = handle;
    value.name = name_of(api_, handle);
    read_type(api_, value);
    check(api_.ValueInfo_IsConstantInitializer(handle, &value.is_constant));
    return value;
}

node_names names_of(const runtime& api, const OrtNode* handle) {
    node_names names;
    for (const auto* input : inputs_of(api, handle)) names.inputs.push_back(name_of(api, input));
    for (const auto* output : outputs_of(api, handle))
        names.outputs.push_back(name_of(api, output));
    return names;
}

} // namespace maskwise::ort
