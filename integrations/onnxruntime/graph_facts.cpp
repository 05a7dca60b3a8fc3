#include "graph_facts.hpp"

#include "element_types.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace maskwise::ort {
namespace {

template <class Function, class... Arguments>
std::string_view text(Function function, Arguments... arguments) {
    const char* found = nullptr;
    check(function(arguments..., &found));
    return found == nullptr ? "" : found;
}

// Of ONNX Runtime's own domain. Any other name there is a function of the model's, which may do
// anything; ONNX's domain always means ONNX's operators. A function may have one of these names,
// too, so nothing is claimed for what these nodes compute.
constexpr std::string_view own_operators[] = {"DequantizeLinear", "FusedMatMul", "QuantizeLinear"};

// Null where ONNX Runtime does not show a constant's elements.
const void* data_of_constant(const runtime& with, const abi::value_info* value) {
    const abi::value* constant = nullptr;
    check(with.ValueInfo_GetInitializerValue(value, &constant));
    const void* data = nullptr;
    if (constant != nullptr) check(with.GetTensorData(constant, &data));
    return data;
}

} // namespace

const abi::value_info* output_of(const runtime& with, const abi::node* node) {
    const auto outputs = outputs_of(with, node);
    return outputs.empty() ? nullptr : outputs[0];
}

std::vector<const abi::value_info*> inputs_of(const runtime& with, const abi::node* node) {
    std::size_t count = 0;
    check(with.Node_GetNumInputs(node, &count));
    std::vector<const abi::value_info*> inputs(count);
    check(with.Node_GetInputs(node, inputs.data(), count));
    return inputs;
}

bool is_complete(const runtime& with, const abi::node* node) {
    const auto inputs = inputs_of(with, node);
    return output_of(with, node) != nullptr && std::ranges::find(inputs, nullptr) == inputs.end();
}

bool has_too_many_dims(const runtime& with, const abi::node* node) {
    const auto has = [&](const abi::value_info* value) {
        return facts_of(with, value).has_too_many_dims;
    };
    return std::ranges::any_of(inputs_of(with, node), has) ||
           std::ranges::any_of(outputs_of(with, node), has);
}

bool is_graph_output(const runtime& with, const abi::value_info* value) {
    bool is = false;
    if (value != nullptr) check(with.ValueInfo_IsGraphOutput(value, &is));
    return is;
}

std::size_t reader_count(const runtime& with, const abi::value_info* value) {
    std::size_t count = 0;
    if (value != nullptr) check(with.ValueInfo_GetValueNumConsumers(value, &count));
    return count;
}

std::string_view name_of(const runtime& with, const abi::value_info* value) {
    return value == nullptr ? "" : text(with.GetValueInfoName, value);
}

value_facts facts_of(const runtime& with, const abi::value_info* value) {
    const abi::type_info* type = nullptr;
    const abi::tensor_info* tensor = nullptr;
    if (value != nullptr) check(with.GetValueInfoTypeInfo(value, &type));
    if (type != nullptr) check(with.CastTypeInfoToTensorInfo(type, &tensor));
    if (tensor == nullptr) return {};
    value_facts facts;
    check(with.GetTensorElementType(tensor, &facts.element));
    if (!with.TensorTypeAndShape_HasShape(tensor)) return facts;
    std::size_t rank = 0;
    check(with.GetDimensionsCount(tensor, &rank));
    facts.has_too_many_dims = rank > max_rank;
    if (facts.has_too_many_dims) return facts;
    facts.extents = dims::filled(static_cast<int>(rank), -1);
    check(with.GetDimensions(tensor, facts.extents->begin(), rank));
    return facts;
}

bool value_facts::is_one_element() const {
    return extents &&
           std::ranges::all_of(*extents, [](std::int64_t extent) { return extent == 1; });
}

std::vector<const abi::node*> nodes_of(const runtime& with, const abi::graph* graph) {
    std::size_t count = 0;
    check(with.Graph_GetNumNodes(graph, &count));
    std::vector<const abi::node*> nodes(count);
    check(with.Graph_GetNodes(graph, nodes.data(), count));
    return nodes;
}

std::string_view name_of(const runtime& with, const abi::node* node) {
    return text(with.Node_GetName, node);
}

bool is_operator(const runtime& with, const abi::node* node, std::string_view type) {
    if (node == nullptr || text(with.Node_GetOperatorType, node) != type) return false;
    const std::string_view domain = text(with.Node_GetDomain, node);
    if (domain == "com.microsoft")
        return std::ranges::find(own_operators, type) != std::end(own_operators);
    return domain.empty() || domain == "ai.onnx";
}

int since_version(const runtime& with, const abi::node* node) {
    int version = 0;
    check(with.Node_GetSinceVersion(node, &version));
    return version;
}

std::string_view provider_of(const runtime& with, const abi::node* node) {
    return text(with.Node_GetEpName, node);
}

const abi::value_info* input_of(const runtime& with, const abi::node* node, std::size_t index) {
    const auto inputs = inputs_of(with, node);
    return index < inputs.size() ? inputs[index] : nullptr;
}

std::vector<const abi::value_info*> outputs_of(const runtime& with, const abi::node* node) {
    std::size_t count = 0;
    check(with.Node_GetNumOutputs(node, &count));
    std::vector<const abi::value_info*> outputs(count);
    check(with.Node_GetOutputs(node, outputs.data(), count));
    return outputs;
}

const abi::node* maker_of(const runtime& with, const abi::value_info* value) {
    const abi::node* maker = nullptr;
    std::size_t output = 0;
    if (value != nullptr) check(with.ValueInfo_GetValueProducer(value, &maker, &output));
    return maker;
}

const abi::node* producer_of(const runtime& with, const abi::node* node, std::size_t input) {
    return node == nullptr ? nullptr : maker_of(with, input_of(with, node, input));
}

std::vector<reader> readers_of(const runtime& with, const abi::value_info* value) {
    const std::size_t count = reader_count(with, value);
    if (count == 0) return {};
    std::vector<const abi::node*> nodes(count);
    std::vector<std::int64_t> inputs(count);
    check(with.ValueInfo_GetValueConsumers(value, nodes.data(), inputs.data(), count));
    std::vector<reader> readers;
    for (std::size_t i = 0; i < count; ++i) readers.push_back({nodes[i], inputs[i]});
    return readers;
}

std::vector<reader> readers_of(const runtime& with, const abi::node* node) {
    return readers_of(with, output_of(with, node));
}

value_facts facts_of_output(const runtime& with, const abi::node* node) {
    return facts_of(with, output_of(with, node));
}

bool is_constant(const runtime& with, const abi::value_info* value) {
    bool is = false;
    if (value != nullptr) check(with.ValueInfo_IsConstantInitializer(value, &is));
    return is;
}

bool is_zero(const runtime& with, const abi::value_info* value) {
    if (!is_constant(with, value)) return false;
    const value_facts facts = facts_of(with, value);
    if (!facts.is_one_element() || facts.extents->rank() > 1) return false;
    const void* const data = data_of_constant(with, value);
    constexpr std::byte zeros[sizeof(double)] = {};
    return data != nullptr && std::memcmp(data, zeros, width_bytes(type_of(facts.element))) == 0;
}

namespace {

template <class Number>
std::optional<Number> one_attribute_of(const runtime& with, const abi::node* node, const char* name,
                                       abi::attribute_type type) {
    const abi::attribute* found = nullptr;
    check(with.Node_GetAttributeByName(node, name, &found));
    if (found == nullptr) return std::nullopt;
    Number number = 0;
    std::size_t bytes = 0;
    check(with.ReadOpAttr(found, type, &number, sizeof(number), &bytes));
    return number;
}

} // namespace

std::optional<std::int64_t> attribute_of(const runtime& with, const abi::node* node,
                                         const char* name) {
    return one_attribute_of<std::int64_t>(with, node, name, abi::attribute_int);
}

std::optional<float> float_attribute_of(const runtime& with, const abi::node* node,
                                        const char* name) {
    return one_attribute_of<float>(with, node, name, abi::attribute_float);
}

std::optional<std::vector<std::int64_t>> attributes_of(const runtime& with, const abi::node* node,
                                                       const char* name) {
    const abi::attribute* found = nullptr;
    check(with.Node_GetAttributeByName(node, name, &found));
    if (found == nullptr) return std::nullopt;
    std::size_t bytes = 0; // no room: a status, and how much it would be
    abi::status* const status = with.ReadOpAttr(found, abi::attribute_ints, nullptr, 0, &bytes);
    if (status != nullptr) with.ReleaseStatus(status);
    std::vector<std::int64_t> numbers(bytes / sizeof(std::int64_t));
    check(with.ReadOpAttr(found, abi::attribute_ints, numbers.data(), bytes, &bytes));
    return numbers;
}

std::optional<float> constant_float(const runtime& with, const abi::node* node, std::size_t input) {
    const abi::value_info* const value = input_of(with, node, input);
    if (!is_constant(with, value)) return std::nullopt;
    const value_facts facts = facts_of(with, value);
    if (facts.element != abi::element_f32 || !facts.is_one_element()) return std::nullopt;
    const void* const data = data_of_constant(with, value);
    return data == nullptr ? std::nullopt : std::optional(*static_cast<const float*>(data));
}

} // namespace maskwise::ort
