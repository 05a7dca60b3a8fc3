#include "claims.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace maskwise::ort {
namespace {

constexpr std::size_t condition = 0, x = 1, y = 2;
constexpr std::int64_t max_shape_elements = 16;

// Whether this chain of operators produces the input. `names` begins with the input's producer;
// each operator's first input is the next operator's result.
bool is_produced_by(const node& reader, std::size_t input, operator_names names) {
    const node* node = &reader;
    return std::ranges::all_of(names, [&](std::string_view name) {
        node = &node->producer(std::exchange(input, 0));
        return node->is(name);
    });
}

// Whether the Where is between DequantizeLinear and QuantizeLinear. ONNX Runtime fuses these nodes
// into one integer operator, if it runs all of them.
bool is_quantized(const node& where) {
    return where.producer(x).is("DequantizeLinear") && where.producer(y).is("DequantizeLinear") &&
           where.result().only_reader().is("QuantizeLinear");
}

// Whether a Where-9 is GPT-2's causal mask, which ONNX Runtime fuses into Attention.
bool is_mask_of_gpt(const node& where) {
    return is_produced_by(where, condition, {"Cast", "Slice", "Slice"}) &&
           where.producer(x).is("Div") && where.input(y).number() == -10000.0F &&
           where.result().only_reader().is_one_of({"Add", "Softmax"});
}

// Whether a Where-9 is DistilBERT's padding mask, which ONNX Runtime fuses into Attention.
bool is_mask_of_distilbert(const node& where) {
    return is_produced_by(where, condition, {"Expand", "Reshape", "Equal"}) &&
           where.producer(y).is("MatMul") &&
           where.input(x).number() == -std::numeric_limits<float>::infinity() &&
           where.result().only_reader().is("Softmax");
}

bool is_read_as_shape(const value& dst) {
    return std::ranges::any_of(dst.readers, [](const reader& read) {
        return (read.input == 1 && read.node->is_one_of({"Expand", "Reshape", "Tile"})) ||
               read.node->is("ConstantOfShape");
    });
}

// Whether the result is i64 of rank 0 or 1 with few elements. If the number of elements is unknown,
// the result must be read as a shape.
bool is_shape_arithmetic(const node& where) {
    const value& dst = where.result();
    if (dst.type != data_type::i64 || !dst.extents || dst.extents->rank() > 1) return false;
    const std::int64_t count = dst.extents->empty() ? 1 : (*dst.extents)[0];
    return count < 0 ? is_read_as_shape(dst) : count <= max_shape_elements;
}

// Whether ONNX Runtime's MatmulTransposeFusion treats the Transpose as a transposed batch: its
// order is {1, ..., 0, last} or {1, ..., last, 0}.
bool transposes_batch(const node& transpose) {
    const auto order = transpose.attribute<std::int64_t>("perm", ORT_OP_ATTR_INTS);
    if (!order || order->size() < 3 || order->front() != 1) return false;
    const auto last = static_cast<std::int64_t>(order->size()) - 1;
    if (order->end()[-1] != last && order->end()[-2] != last) return false;
    return std::adjacent_find(order->begin(), order->end() - 2, [](auto one, auto next) {
               return one + 1 != next;
           }) == order->end() - 2;
}

// Returns the node's input if an optimizer of ONNX Runtime can remove the node, else null.
// Optimizers remove a Cast, and fold a Mul or Div with a constant into the MatMul.
const value* remaining_input(const node& node) {
    if (node.is("Cast")) return &node.input(0);
    if (!node.is_one_of({"Mul", "Div"})) return nullptr;
    if (node.input(1).is_constant) return &node.input(0);
    return node.input(0).is_constant ? &node.input(1) : nullptr;
}

bool is_cast_of_transposed_batch(const value& operand) {
    bool is_cast = operand.type == data_type::f16; // ONNX Runtime computes products in f32
    const node* producer = operand.producer;
    while (const value* const input = remaining_input(*producer)) {
        is_cast |= producer->is("Cast") || input->type == data_type::f16;
        producer = input->producer;
    }
    return is_cast && producer->is("Transpose") && transposes_batch(*producer) &&
           !producer->result().is_output;
}

bool is_broken_product(const node& product) {
    if (!product.is_one_of({"MatMul", "FusedMatMul"})) return false;
    const value &left = product.input(0), &right = product.input(1);
    const bool is_fused =
        left.extents && right.extents && left.extents->rank() == right.extents->rank();
    return !is_fused && (is_cast_of_transposed_batch(left) || is_cast_of_transposed_batch(right));
}

} // namespace

std::string describe(const node& node) {
    return (node.is_microsoft ? "com.microsoft." : "") + std::string(node.type) + '-' +
           std::to_string(node.since_version) + ' ' + std::string(to_string(node.result().type));
}

std::string reason_to_refuse(const node& where) {
    if (where.has_too_many_dims()) return "more than " + std::to_string(max_rank) + " dimensions";
    if (is_quantized(where)) return "between DequantizeLinear and QuantizeLinear";
    if (is_shape_arithmetic(where)) return "arithmetic of a shape";
    if (where.since_version >= 16) return ""; // ONNX Runtime's patterns contain Where-9 only
    if (is_mask_of_gpt(where)) return "the causal mask of ONNX Runtime's attention fusion";
    if (is_mask_of_distilbert(where)) return "the padding mask of ONNX Runtime's attention fusion";
    return "";
}

bool breaks_transpose_fusion(const model_graph& graph) {
    return std::ranges::any_of(graph.nodes(), [](const node& each) {
        return is_broken_product(each) ||
               std::ranges::any_of(each.graphs(), breaks_transpose_fusion);
    });
}

} // namespace maskwise::ort
