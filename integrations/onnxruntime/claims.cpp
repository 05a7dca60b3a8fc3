#include "claims.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace maskwise::ort {
namespace {

constexpr std::size_t condition = 0, x = 1, y = 2;
// A shape has a handful of elements.
constexpr std::int64_t most_of_a_shape = 16;

// Whether an input comes through these operators, the last first, by their first inputs.
bool comes_through(const node& reads, std::size_t input, operator_names names) {
    const node* at = &reads;
    return std::ranges::all_of(names, [&](std::string_view name) {
        at = &at->producer(std::exchange(input, 0));
        return at->is(name);
    });
}

// ONNX Runtime makes one integer operator of it, of nodes of its own provider only.
bool is_quantized(const node& where) {
    return where.producer(x).is("DequantizeLinear") && where.producer(y).is("DequantizeLinear") &&
           where.result().only_reader().is("QuantizeLinear");
}

// GPT-2's causal mask by Where-9, of which ONNX Runtime makes Attention.
bool is_mask_of_gpt(const node& where) {
    return comes_through(where, condition, {"Cast", "Slice", "Slice"}) &&
           where.producer(x).is("Div") && where.input(y).number() == -10000.0F &&
           where.result().only_reader().is_one_of({"Add", "Softmax"});
}

// DistilBERT's padding mask by Where-9, likewise.
bool is_mask_of_distilbert(const node& where) {
    return comes_through(where, condition, {"Expand", "Reshape", "Equal"}) &&
           where.producer(y).is("MatMul") &&
           where.input(x).number() == -std::numeric_limits<float>::infinity() &&
           where.result().only_reader().is("Softmax");
}

bool is_read_as_shape(const value& dst) {
    return std::ranges::any_of(dst.readers, [](const reader& read) {
        return (read.input == 1 && read.by->is_one_of({"Expand", "Reshape", "Tile"})) ||
               read.by->is("ConstantOfShape");
    });
}

// Known to be short, or of unknown length and read as a shape.
bool is_shape_arithmetic(const node& where) {
    const value& dst = where.result();
    if (dst.type != data_type::i64 || !dst.extents || dst.extents->rank() > 1) return false;
    const std::int64_t count = dst.extents->empty() ? 1 : (*dst.extents)[0];
    return count < 0 ? is_read_as_shape(dst) : count <= most_of_a_shape;
}

// What the fusion takes for a Transpose of the outermost dimension: {1, ..., 0, last} and
// {1, ..., last, 0}.
bool turns_batch(const node& transpose) {
    const auto order = transpose.attribute<std::int64_t>("perm", ORT_OP_ATTR_INTS);
    if (!order || order->size() < 3 || order->front() != 1) return false;
    const auto last = static_cast<std::int64_t>(order->size()) - 1;
    if (order->end()[-1] != last && order->end()[-2] != last) return false;
    return std::adjacent_find(order->begin(), order->end() - 2, [](auto one, auto next) {
               return one + 1 != next;
           }) == order->end() - 2;
}

// The input that other optimizers leave of this operator, where they do: a number goes into the
// product.
const value* passed_on(const node& of) {
    if (of.is("Cast")) return &of.input(0);
    if (!of.is_one_of({"Mul", "Div"})) return nullptr;
    if (of.input(1).is_constant) return &of.input(0);
    return of.input(0).is_constant ? &of.input(1) : nullptr;
}

bool comes_by_cast_from_turned_batch(const value& operand) {
    bool is_cast = operand.type == data_type::f16; // products are computed in f32
    const node* maker = operand.maker;
    while (const value* const input = passed_on(*maker)) {
        is_cast |= maker->is("Cast") || input->type == data_type::f16;
        maker = input->maker;
    }
    return is_cast && maker->is("Transpose") && turns_batch(*maker) && !maker->result().is_output;
}

bool is_broken_product(const node& product) {
    if (!product.is_one_of({"MatMul", "FusedMatMul"})) return false;
    const value &left = product.input(0), &right = product.input(1);
    const bool is_fused =
        left.extents && right.extents && left.extents->rank() == right.extents->rank();
    return !is_fused &&
           (comes_by_cast_from_turned_batch(left) || comes_by_cast_from_turned_batch(right));
}

} // namespace

std::string describe(const node& of) {
    return (of.is_own ? "com.microsoft." : "") + std::string(of.type) + '-' +
           std::to_string(of.since_version) + ' ' + std::string(to_string(of.result().type));
}

std::string reason_to_refuse(const node& where) {
    if (where.has_too_many_dims()) return "more than " + std::to_string(max_rank) + " dimensions";
    if (is_quantized(where)) return "between DequantizeLinear and QuantizeLinear";
    if (is_shape_arithmetic(where)) return "arithmetic of a shape";
    if (where.since_version >= 16) return ""; // the patterns know Where-9 only
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
