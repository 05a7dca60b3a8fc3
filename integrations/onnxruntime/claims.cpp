#include "claims.hpp"

#include "element_types.hpp"
#include "graph_facts.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

namespace maskwise::ort {
namespace {

constexpr std::size_t condition = 0, x = 1, y = 2;
// A shape has a handful of elements.
constexpr std::int64_t most_of_a_shape = 16;

using operator_names = std::initializer_list<std::string_view>;

bool is_one_of(const runtime& with, const abi::node* node, operator_names names) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return is_operator(with, node, name); });
}

// Whether an input comes through these operators, the last first, by their first inputs.
bool comes_through(const runtime& with, const abi::node* node, std::size_t input,
                   operator_names names) {
    for (const std::string_view name : names) {
        node = producer_of(with, node, std::exchange(input, 0));
        if (!is_operator(with, node, name)) return false;
    }
    return true;
}

const abi::node* only_reader(const runtime& with, const abi::node* node) {
    const auto readers = readers_of(with, node);
    return readers.size() == 1 ? readers[0].node : nullptr;
}

// ONNX Runtime makes one integer operator of it, of nodes of its own provider only.
bool is_quantized(const runtime& with, const abi::node* where) {
    return comes_through(with, where, x, {"DequantizeLinear"}) &&
           comes_through(with, where, y, {"DequantizeLinear"}) &&
           is_operator(with, only_reader(with, where), "QuantizeLinear");
}

// GPT-2's causal mask by Where-9, of which ONNX Runtime makes Attention.
bool is_mask_of_gpt(const runtime& with, const abi::node* where) {
    return comes_through(with, where, condition, {"Cast", "Slice", "Slice"}) &&
           comes_through(with, where, x, {"Div"}) && constant_float(with, where, y) == -10000.0F &&
           is_one_of(with, only_reader(with, where), {"Add", "Softmax"});
}

// DistilBERT's padding mask by Where-9, likewise.
bool is_mask_of_distilbert(const runtime& with, const abi::node* where) {
    return comes_through(with, where, condition, {"Expand", "Reshape", "Equal"}) &&
           comes_through(with, where, y, {"MatMul"}) &&
           constant_float(with, where, x) == -std::numeric_limits<float>::infinity() &&
           is_operator(with, only_reader(with, where), "Softmax");
}

bool is_read_as_shape(const runtime& with, const abi::node* where) {
    const auto readers = readers_of(with, where);
    return std::any_of(readers.begin(), readers.end(), [&](const reader& by) {
        return (by.input == 1 && is_one_of(with, by.node, {"Expand", "Reshape", "Tile"})) ||
               is_one_of(with, by.node, {"ConstantOfShape"});
    });
}

// Known to be short, or of unknown length and read as a shape.
bool is_shape_arithmetic(const runtime& with, const abi::node* where) {
    const value_facts dst = facts_of_output(with, where);
    if (dst.element != abi::element_i64 || !dst.extents || dst.extents->rank() > 1) return false;
    const std::int64_t count = dst.extents->empty() ? 1 : (*dst.extents)[0];
    return count < 0 ? is_read_as_shape(with, where) : count <= most_of_a_shape;
}

} // namespace

bool is_where(const runtime& with, const abi::node* node) {
    return is_operator(with, node, "Where");
}

std::string describe_where(const runtime& with, const abi::node* node) {
    return "Where-" + std::to_string(since_version(with, node)) + ' ' +
           std::string(to_string(type_of(facts_of_output(with, node).element)));
}

std::string reason_to_refuse(const runtime& with, const abi::node* node) {
    if (has_too_many_dims(with, node))
        return "more than " + std::to_string(max_rank) + " dimensions";
    if (is_quantized(with, node)) return "between DequantizeLinear and QuantizeLinear";
    if (is_shape_arithmetic(with, node)) return "arithmetic of a shape";
    if (since_version(with, node) >= 16) return ""; // the patterns know Where-9 only
    if (is_mask_of_gpt(with, node)) return "the causal mask of ONNX Runtime's attention fusion";
    if (is_mask_of_distilbert(with, node))
        return "the padding mask of ONNX Runtime's attention fusion";
    return "";
}

} // namespace maskwise::ort
