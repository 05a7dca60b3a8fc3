#include "chain_writer.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

namespace maskwise::fuzz {
namespace {

using test::draw;
using test::one_in;

constexpr std::size_t first_op = 100, no_tensor = 7777;

// The allowed relative error of a library's result, including the rounding to the result's type.
double precision(dnnl_data_type_t type) {
    if (type == dnnl_f16) return 1.0 / 1024;
    return type == dnnl_bf16 ? 1.0 / 128 : 4e-6;
}

std::vector<std::int64_t> look_up(const dimensions& shape,
                                  const std::vector<std::int64_t>& extents) {
    std::vector<std::int64_t> result;
    for (const std::size_t dimension : shape) result.push_back(extents[dimension]);
    return result;
}

} // namespace

chain_writer::chain_writer(generator& random, generator& later)
    : random_(random), later_(later), changes_extents_(one_in(random, 2)),
      changes_layouts_(one_in(random, 2)) {
    // Unused draws, without which the corpus would give other graphs.
    if (one_in(random, 2)) one_in(random, 3);
    chain_.lists_are_reversed = one_in(random, 3);
    if (one_in(random, 4)) chain_.further_input = no_tensor;
    chain_.has_further_output = one_in(random, 4);
    chain_.graph.policy = dnnl_graph_partition_policy_fusion;
}

std::size_t chain_writer::add_dimension() {
    static constexpr std::int64_t usual[] = {1, 2, 3, 5, 8, 16, 17, 33, 70};
    const std::int64_t drawn = usual[draw(random_, 0, std::ssize(usual) - 1)];
    // Bounds the product of a graph's extents. With 20 million, all tensors of the oracle, in
    // double precision, took 14 GB.
    constexpr std::int64_t most_elements = 1 << 20;
    const std::int64_t others =
        std::accumulate(then_.begin(), then_.end(), std::int64_t{1}, std::multiplies<>());
    return add_dimension(others * drawn > most_elements ? std::min<std::int64_t>(drawn, 3) : drawn);
}

std::size_t chain_writer::add_dimension(std::int64_t extent) {
    then_.push_back(extent);
    const bool changes = changes_extents_ && extent != 1 && one_in(random_, 2);
    now_.push_back(changes ? draw(random_, 2, 20) : extent);
    return then_.size() - 1;
}

// Permutes the dimensions, sometimes with gaps. The stride of an extent of 1 is arbitrary. Not
// called for tensors of one dimension, because oneDNN crashes if they have gaps.
void chain_writer::lay_out_anew(logical_tensor& tensor) {
    std::vector<std::size_t> order(static_cast<std::size_t>(tensor.ndims));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    std::int64_t stride = one_in(random_, 4) ? 2 : 1;
    for (const std::size_t i : order) {
        const bool is_odd = tensor.dims[i] == 1 && one_in(random_, 3);
        tensor.layout.strides[i] = is_odd ? draw(random_, 1, 99) : stride;
        stride *= tensor.dims[i];
        if (one_in(random_, 6)) stride += 3;
    }
}

void chain_writer::may_reshape(std::size_t rank) {
    forgets_shapes_ = one_in(random_, 6);
    if (one_in(random_, 6)) deepened_ = rank;
    leading_ = draw(random_, 1, 4);
}

// A tensor's shape may be known to one operator and unknown to another.
logical_tensor chain_writer::recorded(const chain_value& value) {
    auto tensor = test::dense(value.id, value.type, look_up(value.shape, then_));
    tensor.property = chain_.now.at(value.id).property;
    if (tensor.property != host_scalar && forgets_shapes_ && one_in(random_, 4))
        forget_shape(random_, tensor);
    return tensor;
}

chain_value chain_writer::tensor(dnnl_data_type_t type, const dimensions& shape) {
    const std::size_t id = chain_.now.size() + 1;
    auto extents = look_up(shape, now_);
    if (deepened_ != 0 && deepened_ == shape.size()) extents.insert(extents.begin(), leading_);
    auto& now = chain_.now[id] = test::dense(id, type, extents);
    const bool may_change = changes_layouts_ && may_lay_out_anew && now.ndims > 1;
    if (may_change && one_in(random_, 3)) lay_out_anew(now);
    return {id, type, shape};
}

chain_value chain_writer::input(dnnl_data_type_t type, const dimensions& shape, double largest) {
    auto result = tensor(type, shape);
    result.largest = chain_.largest[result.id] = largest;
    if (one_in(later_, 8)) chain_.now[result.id].property = dnnl_graph_tensor_property_constant;
    return result;
}

bool chain_writer::allows_host_scalar(dnnl_data_type_t type) const {
    return dnnl_version()->minor >= 9 && type == dnnl_f32;
}

chain_value chain_writer::host_scalar_input() {
    const auto result = input(dnnl_f32, {});
    chain_.now[result.id].property = host_scalar;
    return result;
}

chain_value chain_writer::fill(dnnl_data_type_t type, const dimensions& shape, float value) {
    const auto result = input(type, shape);
    chain_.fills[result.id] = value;
    return result;
}

void chain_writer::add_output(dnnl_data_type_t type, const dimensions& shape, double error) {
    const auto result = tensor(type, shape);
    chain_.tolerance[result.id] = 2 * error;
    chain_.graph.ops.back().outputs.push_back(recorded(result));
}

chain_value chain_writer::op(dnnl_graph_op_kind_t kind, const std::vector<chain_value>& inputs,
                             dnnl_data_type_t type, const dimensions& shape, double largest,
                             double error, test::attribute_list attributes) {
    auto result = tensor(type, shape);
    result.largest = largest;
    result.error = error + largest * precision(type);
    chain_.tolerance[result.id] = 2 * result.error;
    if (changes_layouts_ && one_in(random_, 2)) chain_.open.insert(result.id);
    op_description op{first_op + chain_.graph.ops.size(), kind, "", false, {}, {recorded(result)}};
    for (const auto& input : inputs) op.inputs.push_back(recorded(input));
    op.attributes = std::move(attributes);
    chain_.graph.ops.push_back(std::move(op));
    return result;
}

chain_description chain_writer::finish() {
    const auto& ops = chain_.graph.ops;
    if (chain_.further_input != 0 && one_in(random_, 2))
        chain_.further_input =
            ops[static_cast<std::size_t>(draw(random_, 0, std::ssize(ops) - 1))].outputs[0].id;
    return std::move(chain_);
}

std::string to_string(const chain_description& chain) {
    std::string text;
    for (const auto& op : chain.graph.ops) {
        text += to_string(op);
        for (const auto& [name, value] : op.attributes)
            if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value))
                text += "  attribute " + std::to_string(name) + ": " +
                        (numbers->empty() ? "" : std::to_string(numbers->front())) + '\n';
    }
    compile_description now;
    for (const auto& [id, tensor] : chain.now)
        (chain.largest.contains(id) ? now.inputs : now.outputs).push_back(tensor);
    return text + to_string(now) +
           (chain.lists_are_reversed ? "compile: reversed lists of inputs and outputs\n" : "") +
           (chain.further_input != 0
                ? "compile: a further input " + std::to_string(chain.further_input) + '\n'
                : "") +
           (chain.has_further_output ? "compile: a further output\n" : "");
}

} // namespace maskwise::fuzz
