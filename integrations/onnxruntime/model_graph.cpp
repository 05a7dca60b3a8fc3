#include "model_graph.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace maskwise::ort {
namespace {

const node no_node;
const value no_value = [] {
    value made;
    made.maker = &no_node;
    return made;
}();

// Of ONNX Runtime's own domain. Any other name there is a function of the model's, which may do
// anything; ONNX's domain always means ONNX's operators. A function may have one of these names,
// too, so nothing is claimed for what these nodes compute.
constexpr std::string_view own_operators[] = {"DequantizeLinear", "FusedMatMul", "QuantizeLinear"};

bool is_own_operator(std::string_view type) {
    return std::ranges::find(own_operators, type) != std::end(own_operators) ||
           type.find("Attention") != std::string_view::npos;
}

template <class Function, class From>
std::string_view text(Function function, From from) {
    const char* found = nullptr;
    check(function(from, &found));
    return found == nullptr ? "" : found;
}

template <class To, class Count, class Get, class From>
std::vector<To> list(Count count_of, Get get, From from) {
    std::size_t count = 0;
    check(count_of(from, &count));
    std::vector<To> found(count);
    check(get(from, found.data(), count));
    return found;
}

using value_infos = std::vector<const OrtValueInfo*>;

value_infos inputs_of(const runtime& with, const OrtNode* theirs) {
    return list<const OrtValueInfo*>(with.Node_GetNumInputs, with.Node_GetInputs, theirs);
}

value_infos outputs_of(const runtime& with, const OrtNode* theirs) {
    return list<const OrtValueInfo*>(with.Node_GetNumOutputs, with.Node_GetOutputs, theirs);
}

std::string_view name_of(const runtime& with, const OrtValueInfo* theirs) {
    return theirs == nullptr ? "" : text(with.GetValueInfoName, theirs);
}

std::string_view operator_of(const runtime& with, const OrtNode* theirs) {
    const std::string_view type = text(with.Node_GetOperatorType, theirs);
    const std::string_view domain = text(with.Node_GetDomain, theirs);
    const bool is_own = domain == own_domain && is_own_operator(type);
    return is_own || domain.empty() || domain == "ai.onnx" ? type : "";
}

void read_type(const runtime& with, value& made) {
    const OrtTypeInfo* type = nullptr;
    const OrtTensorTypeAndShapeInfo* tensor = nullptr;
    check(with.GetValueInfoTypeInfo(made.theirs, &type));
    if (type != nullptr) check(with.CastTypeInfoToTensorInfo(type, &tensor));
    if (tensor == nullptr) return;
    ONNXTensorElementDataType element{};
    check(with.GetTensorElementType(tensor, &element));
    made.type = type_of(element);
    if (!with.TensorTypeAndShape_HasShape(tensor)) return;
    std::size_t rank = 0;
    check(with.GetDimensionsCount(tensor, &rank));
    made.has_too_many_dims = rank > max_rank;
    if (made.has_too_many_dims) return;
    made.extents = dims::filled(static_cast<int>(rank), -1);
    check(with.GetDimensions(tensor, made.extents->begin(), rank));
}

// What a Loop carries may have other dimensions in each turn, and more of them, whatever its body
// says.
bool is_body_of_loop(const runtime& with, const OrtGraph* graph) {
    const OrtNode* parent = nullptr;
    check(with.Graph_GetParentNode(graph, &parent));
    return parent != nullptr && operator_of(with, parent) == "Loop";
}

} // namespace

const node& value::only_reader() const {
    return readers.size() == 1 ? *readers[0].by : no_node;
}

bool value::is_one_element() const {
    return extents &&
           std::ranges::all_of(*extents, [](std::int64_t extent) { return extent == 1; });
}

// Null where ONNX Runtime does not show a constant's elements.
const void* value::element() const {
    const OrtValue* constant = nullptr;
    const void* data = nullptr;
    if (!is_constant || !is_one_element()) return nullptr;
    check(with->ValueInfo_GetInitializerValue(theirs, &constant));
    if (constant != nullptr) check(with->GetTensorData(constant, &data));
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
    const auto is_there = [](const value* each) { return each->theirs != nullptr; };
    return is_there(&result()) && std::ranges::all_of(inputs, is_there);
}

bool node::has_too_many_dims() const {
    const auto has = [](const value* each) { return each->has_too_many_dims; };
    return std::ranges::any_of(inputs, has) || std::ranges::any_of(outputs, has);
}

std::vector<model_graph> node::graphs() const {
    std::size_t count = 0;
    check(with->Node_GetNumSubgraphs(theirs, &count));
    std::vector<const OrtGraph*> found(count);
    if (count != 0) check(with->Node_GetSubgraphs(theirs, found.data(), count, nullptr));
    std::vector<model_graph> graphs;
    graphs.reserve(count);
    for (const OrtGraph* const each : found) graphs.emplace_back(*with, each);
    return graphs;
}

template <class Number>
std::optional<std::vector<Number>> node::attribute(const char* of, OrtOpAttrType kind) const {
    const OrtOpAttr* found = nullptr;
    // An error for a name that the operator does not have, in this version of ONNX Runtime.
    OrtStatus* const unknown = with->Node_GetAttributeByName(theirs, of, &found);
    if (unknown != nullptr) with->ReleaseStatus(unknown);
    if (found == nullptr) return std::nullopt;
    std::vector<Number> numbers(1);
    std::size_t bytes = 0; // of the value, also where it does not fit
    const auto read = [&] {
        return with->ReadOpAttr(found, kind, numbers.data(), sizeof(Number) * numbers.size(),
                                &bytes);
    };
    OrtStatus* const status = read();
    numbers.resize(bytes / sizeof(Number));
    if (status != nullptr) {
        with->ReleaseStatus(status);
        check(read());
    }
    return numbers;
}
template std::optional<std::vector<float>> node::attribute(const char*, OrtOpAttrType) const;
template std::optional<std::vector<std::int64_t>> node::attribute(const char*, OrtOpAttrType) const;

std::int64_t node::integer(const char* of, std::int64_t otherwise) const {
    const auto found = attribute<std::int64_t>(of, ORT_OP_ATTR_INT);
    return found ? found->front() : otherwise;
}

std::vector<std::pair<std::string_view, std::int64_t>> node::integers() const {
    std::vector<std::pair<std::string_view, std::int64_t>> found;
    for (const auto* each :
         list<const OrtOpAttr*>(with->Node_GetNumAttributes, with->Node_GetAttributes, theirs)) {
        OrtOpAttrType kind{};
        check(with->OpAttr_GetType(each, &kind));
        if (kind != ORT_OP_ATTR_INT) continue;
        std::int64_t number = 0;
        std::size_t bytes = 0;
        check(with->ReadOpAttr(each, kind, &number, sizeof(number), &bytes));
        found.emplace_back(text(with->OpAttr_GetName, each), number);
    }
    return found;
}

float node::number(const char* of, float otherwise) const {
    const auto found = attribute<float>(of, ORT_OP_ATTR_FLOAT);
    return found ? found->front() : otherwise;
}

model_graph::model_graph(const runtime& with, const OrtGraph* theirs) : with_(with) {
    const auto nodes = list<const OrtNode*>(with.Graph_GetNumNodes, with.Graph_GetNodes, theirs);
    nodes_.resize(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        node& made = nodes_[i];
        made.with = &with;
        made.theirs = nodes[i];
        made.type = operator_of(with, nodes[i]);
        made.name = text(with.Node_GetName, nodes[i]);
        made.provider = text(with.Node_GetEpName, nodes[i]);
        made.is_own = text(with.Node_GetDomain, nodes[i]) == own_domain;
        check(with.Node_GetSinceVersion(nodes[i], &made.since_version));
    }
    for (node& each : nodes_) read_values(each);
    for (const auto* each :
         list<const OrtValueInfo*>(with.Graph_GetNumOutputs, with.Graph_GetOutputs, theirs))
        find_value(each).is_output = true;
    if (!is_body_of_loop(with, theirs)) return;
    for (auto& [_, each] : values_)
        if (!each.is_constant) each.extents = std::nullopt;
}

// Who makes and who reads a value comes from the nodes: asked for that, ONNX Runtime (1.24 to 1.32)
// ends the process where the value is of an outer graph, or the graph inside another.
void model_graph::read_values(node& of) {
    for (const auto* each : inputs_of(with_, of.theirs)) {
        value& read = find_value(each);
        if (each != nullptr)
            read.readers.push_back({&of, static_cast<std::int64_t>(of.inputs.size())});
        of.inputs.push_back(&read);
    }
    for (const auto* each : list<const OrtValueInfo*>(with_.Node_GetNumImplicitInputs,
                                                      with_.Node_GetImplicitInputs, of.theirs))
        find_value(each).readers.push_back({&of, -1});
    for (const auto* each : outputs_of(with_, of.theirs)) {
        value& made = find_value(each);
        if (each != nullptr) made.maker = &of;
        of.outputs.push_back(&made);
    }
}

value& model_graph::find_value(const OrtValueInfo* theirs) {
    const auto [found, is_new] = values_.try_emplace(theirs, no_value);
    value& made = found->second;
    if (!is_new || theirs == nullptr) return made;
    made.with = &with_;
    made.theirs = theirs;
    made.name = name_of(with_, theirs);
    read_type(with_, made);
    check(with_.ValueInfo_IsConstantInitializer(theirs, &made.is_constant));
    return made;
}

node_names names_of(const runtime& with, const OrtNode* theirs) {
    node_names found;
    for (const auto* each : inputs_of(with, theirs)) found.inputs.push_back(name_of(with, each));
    for (const auto* each : outputs_of(with, theirs)) found.outputs.push_back(name_of(with, each));
    return found;
}

} // namespace maskwise::ort
