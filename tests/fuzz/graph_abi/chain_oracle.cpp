#include "chain_oracle.hpp"

#include "support/operations.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace maskwise::fuzz {
namespace {

template <typename T>
const T* attribute(const op_description& op, dnnl_graph_op_attr_t name) {
    for (const auto& [each, value] : op.attributes)
        if (each == name) return std::get_if<T>(&value);
    return nullptr;
}

std::size_t axis_of(const op_description& op, std::size_t rank) {
    const auto axis = attribute<std::vector<std::int64_t>>(op, dnnl_graph_op_attr_axis)->front();
    return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

double quantize(const op_description& op, double x) {
    const bool is_signed = op.outputs[0].data_type == dnnl_s8;
    const double whole =
        std::nearbyint(x / *attribute<float>(op, dnnl_graph_op_attr_scales)) +
        static_cast<double>(
            attribute<std::vector<std::int64_t>>(op, dnnl_graph_op_attr_zps)->front());
    return std::clamp(whole, is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0);
}

double attribute_or_0(const op_description& op, dnnl_graph_op_attr_t name) {
    const auto* const value = attribute<float>(op, name);
    return value == nullptr ? 0 : static_cast<double>(*value);
}

double compute(const op_description& op, double x, double y) {
    const bool clamps = op.kind == dnnl_graph_op_clamp;
    const double alpha =
        attribute_or_0(op, clamps ? dnnl_graph_op_attr_min : dnnl_graph_op_attr_alpha);
    const double beta = attribute_or_0(op, dnnl_graph_op_attr_max);
    switch (op.kind) {
#define MASKWISE_TEST_OPERATION(name, specified, inputs, value)                                    \
    case dnnl_graph_op_##name:                                                                     \
        return test::compute(test::operation::name, x, y, alpha, beta);
#include "support/operations.inc"
#undef MASKWISE_TEST_OPERATION
    case dnnl_graph_op_quantize:
        return quantize(op, x);
    default: // TypeCast, Reorder
        return x;
    }
}

// Whether the result for NaN is unspecified: the definition does not mention NaN, or oneDNN's
// kernels differ. GreaterEqual differs by layout, Exp's generated kernel returns infinity, and
// Sigmoid's reference kernel returns 0.
bool leaves_nans_open(dnnl_graph_op_kind_t kind) {
    switch (kind) {
    case dnnl_graph_op_exp:
    case dnnl_graph_op_sigmoid:
    case dnnl_graph_op_greater_equal:
    case dnnl_graph_op_relu:
    case dnnl_graph_op_leaky_relu:
    case dnnl_graph_op_clamp:
    case dnnl_graph_op_quantize:
    case dnnl_graph_op_maximum:
    case dnnl_graph_op_minimum:
        return true;
    default:
        return false;
    }
}

double larger(double a, double b) {
    return std::max(a, b);
}

exact_tensor read(const laid_out& stored) {
    test::grid values{{stored.tensor.dims, stored.tensor.dims + stored.tensor.ndims}, {}};
    indices index(values.extents.size());
    do values.values.push_back(load(stored, index));
    while (step(index, stored.tensor));
    return {values, {values.extents, std::vector<double>(values.values.size(), sure)}};
}

exact_tensor multiply_matrices(const op_description& op, const exact_tensor& a,
                               const exact_tensor& b, bool skips) {
    const bool transposes = attribute<bool>(op, dnnl_graph_op_attr_transpose_b) != nullptr;
    const std::size_t rank = a.values.extents.size();
    auto columns = test::largest_along(b.certainty, transposes ? rank - 1 : rank - 2);
    if (transposes) std::swap(columns.extents[rank - 1], columns.extents[rank - 2]);
    // A skipped product makes no NaN. No normal f32 weight is between 0 and this bound.
    const double negligible = skips ? 1e-38 : -1;
    const auto product =
        test::multiply_matrices(a.values, b.values, false, transposes, negligible).value();
    return {product, test::combine(test::largest_along(a.certainty, rank - 1), columns, larger)};
}

// Returns the certainty of each number: at least `of_nans` for a NaN.
test::grid certainty_of(const exact_tensor& x, double of_nans) {
    return test::combine(x.values, x.certainty, [=](double value, double certainty) {
        return std::isnan(value) ? std::max(certainty, of_nans) : certainty;
    });
}

// Returns the result and the logarithms of the sums of exponentials.
std::vector<exact_tensor> soft_max(const op_description& op, const exact_tensor& x,
                                   bool makes_zeros) {
    const auto* mode = attribute<std::string>(op, dnnl_graph_op_attr_mode);
    makes_zeros |= mode != nullptr && *mode == "inf_as_zero";
    const std::size_t axis = axis_of(op, x.values.extents.size());
    const auto [weights, sums] = test::soft_max(x.values, axis, makes_zeros);
    const auto of_rows = test::largest_along(certainty_of(x, after_soft_max), axis);
    return {{weights,
             test::combine(of_rows, weights, [](double certainty, double) { return certainty; })},
            {sums, of_rows}};
}

exact_tensor select(const exact_tensor& cond, const exact_tensor& src_0,
                    const exact_tensor& src_1) {
    const auto &c = cond.values, &x = src_0.values, &y = src_1.values;
    const auto extents = test::broadcast({c.extents, x.extents, y.extents}).value();
    exact_tensor result{{extents, {}}, {extents, {}}};
    const auto steps = [&](const test::grid& operand) {
        return test::broadcast_strides(operand.extents, operand.strides(), extents);
    };
    test::walk<3>(extents, {steps(c), steps(x), steps(y)}, [&](const auto& offsets) {
        const auto cond_index = static_cast<std::size_t>(offsets[0]);
        const bool is_first = c.values[cond_index] != 0;
        const auto& chosen = is_first ? src_0 : src_1;
        const auto from = static_cast<std::size_t>(offsets[is_first ? 1 : 2]);
        result.values.values.push_back(chosen.values.values[from]);
        result.certainty.values.push_back(
            std::max(chosen.certainty.values[from], cond.certainty.values[cond_index]));
    });
    return result;
}

exact_tensor compute_elements(const op_description& op, const exact_tensor& x,
                              const exact_tensor& y) {
    const double of_nans = leaves_nans_open(op.kind) ? open : sure;
    return {
        test::combine(x.values, y.values, [&](double a, double b) { return compute(op, a, b); }),
        test::combine(certainty_of(x, of_nans), certainty_of(y, of_nans), larger)};
}

std::vector<exact_tensor> run_op(const op_description& op,
                                 const std::vector<const exact_tensor*>& in,
                                 const masked_rule& rule) {
    const auto& extents = in[0]->values.extents;
    switch (op.kind) {
    case dnnl_graph_op_matmul:
        return {multiply_matrices(op, *in[0], *in[1], rule.skips_values)};
    case dnnl_graph_op_softmax:
        return soft_max(op, *in[0], rule.makes_zeros);
    case dnnl_graph_op_gen_index:
        return {{test::index_along(extents, axis_of(op, extents.size())),
                 {extents, std::vector<double>(in[0]->values.values.size(), sure)}}};
    case dnnl_graph_op_select:
        return {select(*in[0], *in[1], *in[2])};
    default:
        return {compute_elements(op, *in[0], *in.back())};
    }
}

// Only the second MatMul, of weights and values, may skip values. Its first operand is an
// operator's result. The first operand of the other MatMul, the query, is a graph input.
exact_tensors run(const chain_description& chain, exact_tensors values, const masked_rule& rule) {
    for (const auto& op : chain.graph.ops) {
        std::vector<const exact_tensor*> in;
        for (const auto& input : op.inputs) in.push_back(&values.at(input.id));
        const bool is_weighted = !chain.largest.contains(op.inputs[0].id);
        const auto results = run_op(op, in, {rule.makes_zeros, rule.skips_values && is_weighted});
        for (std::size_t i = 0; i < op.outputs.size(); ++i)
            values.try_emplace(op.outputs[i].id, results[i]);
    }
    return values;
}

bool is_right(double actual, const exact_tensor& wanted, std::size_t index, double tolerance) {
    const double value = wanted.values.values[index];
    if (wanted.certainty.values[index] == open) return true;
    if (std::isnan(value)) return std::isnan(actual);
    return std::fabs(actual - value) <= tolerance || actual == value;
}

} // namespace

chain_oracle::chain_oracle(const chain_description& chain, const tensor_bytes& inputs)
    : chain_(chain) {
    for (const auto& [id, bytes] : inputs) known_[id] = read({chain.now.at(id), bytes});
    compute();
}

void chain_oracle::assume(const laid_out& stored) {
    known_[stored.tensor.id] = read(stored);
    compute();
}

void chain_oracle::compute() {
    for (auto& [rule, values] : by_rule_) values = run(chain_, known_, rule);
}

std::string chain_oracle::find_wrong(const laid_out& stored, bool& loses_nans) const {
    const std::size_t id = stored.tensor.id;
    const double tolerance = chain_.tolerance.at(id);
    const auto& wanted = by_rule_.front().second.at(id);
    const auto actual = read(stored).values.values;
    for (std::size_t i = 0; i < actual.size(); ++i) {
        if (std::any_of(by_rule_.begin(), by_rule_.end(), [&](const auto& each) {
                return is_right(actual[i], each.second.at(id), i, tolerance);
            }))
            continue;
        if (wanted.certainty.values[i] == after_soft_max)
            loses_nans = true;
        else
            return "tensor " + std::to_string(id) + " has " + std::to_string(actual[i]) + ", not " +
                   std::to_string(wanted.values.values[i]) + " within " + std::to_string(tolerance);
    }
    return {};
}

} // namespace maskwise::fuzz
