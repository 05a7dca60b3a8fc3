#include "chain_oracle.hpp"

#include "chain_memory.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace maskwise::fuzz {
namespace {

// Row-major.
struct exact {
    std::vector<std::int64_t> extents;
    std::vector<double> numbers;

    // The element that a result's index reads: aligned at the last dimension, repeated where the
    // extent is 1.
    double at(const indices& index) const {
        std::size_t offset = 0;
        const std::size_t dropped = index.size() - extents.size();
        for (std::size_t i = 0; i < extents.size(); ++i)
            offset = offset * static_cast<std::size_t>(extents[i]) +
                     static_cast<std::size_t>(extents[i] == 1 ? 0 : index[i + dropped]);
        return numbers[offset];
    }
};

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

double compute_unary(const op_description& op, double x) {
    switch (op.kind) {
    case dnnl_graph_op_abs:
        return std::fabs(x);
    case dnnl_graph_op_tanh:
        return std::tanh(x);
    case dnnl_graph_op_sigmoid:
        return 1 / (1 + std::exp(-x));
    case dnnl_graph_op_relu:
        return std::max(x, 0.0);
    case dnnl_graph_op_leaky_relu:
        return x > 0 ? x : x * *attribute<float>(op, dnnl_graph_op_attr_alpha);
    case dnnl_graph_op_clamp:
        return std::clamp<double>(x, *attribute<float>(op, dnnl_graph_op_attr_min),
                                  *attribute<float>(op, dnnl_graph_op_attr_max));
    case dnnl_graph_op_exp:
        return std::exp(x);
    case dnnl_graph_op_square:
        return x * x;
    case dnnl_graph_op_quantize:
        return quantize(op, x);
    default: // TypeCast, Reorder
        return x;
    }
}

double compute_binary(dnnl_graph_op_kind_t kind, double x, double y) {
    switch (kind) {
    case dnnl_graph_op_add:
        return x + y;
    case dnnl_graph_op_subtract:
        return x - y;
    case dnnl_graph_op_multiply:
        return x * y;
    case dnnl_graph_op_divide:
        return x / y;
    case dnnl_graph_op_maximum:
        return std::max(x, y);
    case dnnl_graph_op_minimum:
        return std::min(x, y);
    default:
        return x >= y ? 1 : 0;
    }
}

double multiply_matrices(const op_description& op, const exact& a, const exact& b,
                         const indices& index) {
    const std::size_t rank = index.size();
    const bool transposes = attribute<bool>(op, dnnl_graph_op_attr_transpose_b) != nullptr;
    double sum = 0;
    indices left = index, right = index;
    for (std::int64_t i = 0; i < a.extents[rank - 1]; ++i) {
        left[rank - 1] = right[rank - 2] = i;
        if (transposes) right[rank - 2] = index[rank - 1], right[rank - 1] = i;
        sum += a.at(left) * b.at(right);
    }
    return sum;
}

bool treats_inf_as_zero(const op_description& op) {
    const auto* mode = attribute<std::string>(op, dnnl_graph_op_attr_mode);
    return mode != nullptr && *mode == "inf_as_zero";
}

// Of the row in which the element at `index` is: the maximum and the sum of what is above e to it.
std::pair<double, double> sum_of_row(const op_description& op, const exact& x, indices index) {
    const std::size_t axis = axis_of(op, index.size());
    double maximum = -INFINITY, sum = 0;
    for (index[axis] = 0; index[axis] < x.extents[axis]; ++index[axis])
        maximum = std::isnan(x.at(index)) ? x.at(index) : std::max(maximum, x.at(index));
    for (index[axis] = 0; index[axis] < x.extents[axis]; ++index[axis])
        sum += std::exp(x.at(index) - maximum);
    return {maximum, sum};
}

double soft_max(const op_description& op, const exact& x, const indices& index) {
    const auto [maximum, sum] = sum_of_row(op, x, index);
    if (maximum == -INFINITY && treats_inf_as_zero(op)) return 0;
    return std::exp(x.at(index) - maximum) / sum;
}

double statistics(const op_description& op, const exact& x, const indices& index) {
    const auto [maximum, sum] = sum_of_row(op, x, index);
    if (maximum == -INFINITY && treats_inf_as_zero(op)) return 0;
    return maximum + std::log(sum);
}

double compute(const op_description& op, const std::vector<const exact*>& in,
               const indices& index) {
    switch (op.kind) {
    case dnnl_graph_op_matmul:
        return multiply_matrices(op, *in[0], *in[1], index);
    case dnnl_graph_op_softmax:
        return soft_max(op, *in[0], index);
    case dnnl_graph_op_gen_index:
        return static_cast<double>(index[axis_of(op, index.size())]);
    case dnnl_graph_op_select:
        return in[0]->at(index) != 0 ? in[1]->at(index) : in[2]->at(index);
    default:
        return in.size() == 1 ? compute_unary(op, in[0]->at(index))
                              : compute_binary(op.kind, in[0]->at(index), in[1]->at(index));
    }
}

exact start(const logical_tensor& tensor) {
    return {{tensor.dims, tensor.dims + tensor.ndims}, {}};
}

std::map<std::size_t, exact> compute_all(const chain_description& chain,
                                         const tensor_bytes& inputs) {
    std::map<std::size_t, exact> values;
    for (const auto& [id, bytes] : inputs) {
        const auto& tensor = chain.now.at(id);
        auto& value = values[id] = start(tensor);
        indices index(value.extents.size());
        do value.numbers.push_back(load({tensor, bytes}, index));
        while (step(index, tensor));
    }
    for (const auto& op : chain.graph.ops) {
        std::vector<const exact*> in;
        for (const auto& input : op.inputs) in.push_back(&values.at(input.id));
        for (const auto& output : op.outputs) {
            const auto& tensor = chain.now.at(output.id);
            const bool is_first = output.id == op.outputs[0].id;
            auto value = start(tensor);
            indices index(value.extents.size());
            do
                value.numbers.push_back(is_first ? compute(op, in, index)
                                                 : statistics(op, *in[0], index));
            while (step(index, tensor));
            values[output.id] = std::move(value);
        }
    }
    return values;
}

} // namespace

namespace {

// Of a row that is masked whole oneDNN's reference SoftMax makes zeros.
bool is_right(double own, double wanted, double tolerance) {
    if (std::isnan(wanted)) return std::isnan(own) || own == 0;
    return std::fabs(own - wanted) <= tolerance || own == wanted;
}

} // namespace

std::optional<wrong_tensor> compare_exactly(const chain_result& made,
                                            const chain_description& chain,
                                            const tensor_bytes& inputs) {
    const auto values = compute_all(chain, inputs);
    for (const auto& [id, tolerance] : chain.tolerance) {
        if (!made.tensors.contains(id)) continue;
        const auto& tensor = made.tensors.at(id);
        indices index(static_cast<std::size_t>(tensor.ndims));
        do {
            const double own = load({tensor, made.bytes.at(id)}, index);
            const double wanted = values.at(id).at(index);
            if (!is_right(own, wanted, tolerance))
                return wrong_tensor{
                    id, "tensor " + std::to_string(id) + " has " + std::to_string(own) + ", not " +
                            std::to_string(wanted) + " within " + std::to_string(tolerance)};
        } while (step(index, tensor));
    }
    return std::nullopt;
}

} // namespace maskwise::fuzz
