#include "oracle/ops.hpp"
#include "support/grid.hpp"
#include "support/operations.hpp"

namespace maskwise::bench {
namespace {

test::grid grid_of(const tensor& t) {
    return {t.shape, to_doubles(t)};
}

std::size_t axis_of(const op& o, const tensor& t, std::int64_t otherwise) {
    return front_axis(o.attr("axis", otherwise), t.shape.size());
}

tensor arithmetic_result(const op& o, std::size_t index, const test::grid& result) {
    return bench::arithmetic_result(o, index, result.extents, result.values);
}

} // namespace

std::vector<tensor> oracle_elementwise(const op& o, const operands& in) {
    const auto kind = test::find_operation(o.kind).value();
    const test::grid a = grid_of(*in.at(0));
    const test::grid b = test::input_count(kind) == 2 ? grid_of(*in.at(1)) : a;
    broadcast(a.extents, b.extents); // throws if the shapes do not broadcast
    const auto alpha = static_cast<double>(o.attr(o.kind == "Clamp" ? "min" : "alpha", 0.0F));
    const auto beta = static_cast<double>(o.attr("max", 0.0F));
    return {arithmetic_result(o, 0, test::combine(a, b, [&](double x, double y) {
                                  return test::compute(kind, x, y, alpha, beta);
                              }))};
}

std::vector<tensor> oracle_type_cast(const op& o, const operands& in) {
    return {arithmetic_result(o, 0, grid_of(*in.at(0)))};
}

std::vector<tensor> oracle_matmul(const op& o, const operands& in) {
    auto result = test::multiply_matrices(grid_of(*in.at(0)), grid_of(*in.at(1)),
                                          o.attr<bool>("transpose_a", false),
                                          o.attr<bool>("transpose_b", false));
    if (!result)
        throw input_error("MatMul: shapes " + to_text(in[0]->shape) + " and " +
                          to_text(in[1]->shape) + " cannot be multiplied");
    if (in.size() > 2) result = test::combine(*result, grid_of(*in[2]), std::plus<>());
    return {arithmetic_result(o, 0, *result)};
}

std::vector<tensor> oracle_gen_index(const op& o, const operands& in) {
    const auto result = test::index_along(in.at(0)->shape, axis_of(o, *in[0], 0));
    return {from_doubles(o.outputs.at(0).dtype, result.extents, result.values)};
}

std::vector<tensor> oracle_softmax(const op& o, const operands& in) {
    const bool inf_as_zero = o.attr<std::string>("mode", "none") == "inf_as_zero";
    const auto [weights, statistics] =
        test::soft_max(grid_of(*in.at(0)), axis_of(o, *in[0], 1), inf_as_zero);
    std::vector<tensor> results{arithmetic_result(o, 0, weights)};
    if (o.outputs.size() > 1) results.push_back(arithmetic_result(o, 1, statistics));
    return results;
}

// diff_src = dst * (diff_dst - sum(dst * diff_dst)) along the axis. Inputs: diff_dst, dst.
std::vector<tensor> oracle_softmax_backward(const op& o, const operands& in) {
    const std::size_t axis = axis_of(o, *in.at(0), 1);
    const std::vector<double> diff_dst = to_doubles(*in[0]);
    test::grid dst = grid_of(*in.at(1));
    test::for_each_line(dst, axis, [&](std::size_t first, std::size_t step) {
        const std::size_t end = first + static_cast<std::size_t>(dst.extents[axis]) * step;
        double sum = 0.0;
        for (std::size_t i = first; i < end; i += step) sum += dst.values[i] * diff_dst[i];
        for (std::size_t i = first; i < end; i += step) dst.values[i] *= diff_dst[i] - sum;
    });
    return {arithmetic_result(o, 0, dst)};
}

std::vector<tensor> oracle_reduce_sum(const op& o, const operands& in) {
    const dims& shape = in.at(0)->shape;
    dims reduced = shape; // with 1 for every reduced extent
    for (const std::int64_t axis : o.attr<dims>("axes", {}))
        reduced[front_axis(axis, shape.size())] = 1;
    std::vector<double> sums(static_cast<std::size_t>(test::count_of(reduced)), 0.0);
    const std::vector<double> values = to_doubles(*in[0]);
    auto next = values.begin();
    test::walk<1>(
        shape, {test::broadcast_strides(reduced, dense_strides(reduced), shape)},
        [&](const auto& offsets) { sums[static_cast<std::size_t>(offsets[0])] += *next++; });
    return {bench::arithmetic_result(o, 0, o.outputs.at(0).shape, sums)};
}

} // namespace maskwise::bench
