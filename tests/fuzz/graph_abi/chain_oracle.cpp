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

// Their definitions do not mention NaN.
bool leaves_nans_open(dnnl_graph_op_kind_t kind) {
    switch (kind) {
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

exact_number multiply_matrices(const op_description& op, const exact_tensor& a,
                               const exact_tensor& b, const indices& index) {
    const std::size_t rank = index.size();
    const bool transposes = attribute<bool>(op, dnnl_graph_op_attr_transpose_b) != nullptr;
    exact_number sum;
    indices left = index, right = index;
    for (std::int64_t i = 0; i < a.extents[rank - 1]; ++i) {
        left[rank - 1] = right[rank - 2] = i;
        if (transposes) right[rank - 2] = index[rank - 1], right[rank - 1] = i;
        const auto x = a.at(left), y = b.at(right);
        sum.value += x.value * y.value;
        sum.is = std::max({sum.is, x.is, y.is});
    }
    return sum;
}

bool treats_inf_as_zero(const op_description& op) {
    const auto* mode = attribute<std::string>(op, dnnl_graph_op_attr_mode);
    return mode != nullptr && *mode == "inf_as_zero";
}

// The row in which the element at `index` is.
struct row_facts {
    std::vector<double> values;
    certainty is = certainty::sure;
};

row_facts look_at_row(std::size_t axis, const exact_tensor& x, indices index) {
    row_facts row;
    for (index[axis] = 0; index[axis] < x.extents[axis]; ++index[axis]) {
        const auto [value, is] = x.at(index);
        row.values.push_back(value);
        row.is = std::max({row.is, is, std::isnan(value) ? certainty::after_soft_max : is});
    }
    return row;
}

template <typename Compute>
exact_tensor fill(const logical_tensor& tensor, const Compute& compute) {
    exact_tensor made{{tensor.dims, tensor.dims + tensor.ndims}, {}};
    indices index(made.extents.size());
    do made.numbers.push_back(compute(index));
    while (step(index, tensor));
    return made;
}

exact_tensor read(const laid_out& made) {
    return fill(made.tensor, [&](const indices& index) { return exact_number{load(made, index)}; });
}

// One way to compute the chain.
class computation {
public:
    explicit computation(bool makes_zeros) : makes_zeros_(makes_zeros) {}

    exact_tensors run(const chain_description& chain, exact_tensors values) const {
        for (const auto& op : chain.graph.ops) {
            std::vector<const exact_tensor*> in;
            for (const auto& input : op.inputs) in.push_back(&values.at(input.id));
            for (const auto& output : op.outputs) {
                if (values.contains(output.id)) continue;
                values[output.id] = fill(chain.now.at(output.id), [&](const indices& index) {
                    return output.id == op.outputs[0].id ? compute(op, in, index)
                                                         : soft_max(op, *in[0], index, true);
                });
            }
        }
        return values;
    }

private:
    // An element of SoftMax's result, or of the logarithms of its sums.
    exact_number soft_max(const op_description& op, const exact_tensor& x, const indices& index,
                          bool is_statistics) const {
        const std::size_t axis = axis_of(op, index.size());
        auto row = look_at_row(axis, x, index);
        const double statistics = test::soft_max(row.values.data(), row.values.size(), 1,
                                                 makes_zeros_ || treats_inf_as_zero(op));
        return {is_statistics ? statistics : row.values[static_cast<std::size_t>(index[axis])],
                row.is};
    }

    exact_number compute(const op_description& op, const std::vector<const exact_tensor*>& in,
                         const indices& index) const {
        switch (op.kind) {
        case dnnl_graph_op_matmul:
            return multiply_matrices(op, *in[0], *in[1], index);
        case dnnl_graph_op_softmax:
            return soft_max(op, *in[0], index, false);
        case dnnl_graph_op_gen_index:
            return {static_cast<double>(index[axis_of(op, index.size())])};
        case dnnl_graph_op_select:
            return select(in[0]->at(index), in[1]->at(index), in[2]->at(index));
        default:
            return compute_element(op, in, index);
        }
    }

    static exact_number select(const exact_number& cond, const exact_number& src_0,
                               const exact_number& src_1) {
        auto chosen = cond.value != 0 ? src_0 : src_1;
        chosen.is = std::max(chosen.is, cond.is);
        return chosen;
    }

    static exact_number compute_element(const op_description& op,
                                        const std::vector<const exact_tensor*>& in,
                                        const indices& index) {
        const auto x = in[0]->at(index), y = in.back()->at(index);
        const bool is_open =
            (std::isnan(x.value) || std::isnan(y.value)) && leaves_nans_open(op.kind);
        return {fuzz::compute(op, x.value, y.value),
                is_open ? certainty::open : std::max(x.is, y.is)};
    }

    bool makes_zeros_;
};

bool is_right(double own, const exact_number& wanted, double tolerance) {
    if (wanted.is == certainty::open) return true;
    if (std::isnan(wanted.value)) return std::isnan(own);
    return std::fabs(own - wanted.value) <= tolerance || own == wanted.value;
}

} // namespace

const exact_number& exact_tensor::at(const indices& index) const {
    std::size_t offset = 0;
    const std::size_t dropped = index.size() - extents.size();
    for (std::size_t i = 0; i < extents.size(); ++i)
        offset = offset * static_cast<std::size_t>(extents[i]) +
                 static_cast<std::size_t>(extents[i] == 1 ? 0 : index[i + dropped]);
    return numbers[offset];
}

chain_oracle::chain_oracle(const chain_description& chain, const tensor_bytes& inputs)
    : chain_(chain) {
    for (const auto& [id, bytes] : inputs) given_[id] = read({chain.now.at(id), bytes});
    compute();
}

void chain_oracle::take(const laid_out& made) {
    given_[made.tensor.id] = read(made);
    compute();
}

void chain_oracle::compute() {
    with_nans_ = computation(false).run(chain_, given_);
    with_zeros_ = computation(true).run(chain_, given_);
}

std::string chain_oracle::find_wrong(const laid_out& made, bool& loses_nans) const {
    const std::size_t id = made.tensor.id;
    const double tolerance = chain_.tolerance.at(id);
    const auto &wanted = with_nans_.at(id), &or_else = with_zeros_.at(id);
    indices index(static_cast<std::size_t>(made.tensor.ndims));
    do {
        const double own = load(made, index);
        if (is_right(own, wanted.at(index), tolerance) ||
            is_right(own, or_else.at(index), tolerance))
            continue;
        if (wanted.at(index).is == certainty::after_soft_max)
            loses_nans = true;
        else
            return "tensor " + std::to_string(id) + " has " + std::to_string(own) + ", not " +
                   std::to_string(wanted.at(index).value) + " within " + std::to_string(tolerance);
    } while (step(index, made.tensor));
    return {};
}

} // namespace maskwise::fuzz
