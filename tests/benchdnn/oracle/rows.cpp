#include "data/walk.hpp"
#include "oracle/ops.hpp"
#include "support/operations.hpp"

namespace maskwise::bench {
namespace {

// visit(first element, step) for every line of `shape` along `axis`, lines in row-major order.
template <typename Visit>
void for_each_line(const dims& shape, std::size_t axis, Visit visit) {
    const dims strides = dense_strides(shape);
    dims lines = shape;
    lines[axis] = 1;
    walk_rows<1>(lines, {strides}, [&](const auto& at, std::int64_t extent) {
        for (std::int64_t i = 0; i < extent; ++i)
            visit(static_cast<std::size_t>(at[0] + i * inner_stride(strides)),
                  static_cast<std::size_t>(strides[axis]));
    });
}

} // namespace

std::vector<tensor> oracle_softmax(const op& o, const operands& in) {
    const dims& shape = in.at(0)->shape;
    const std::size_t axis = front_axis(o.attr<std::int64_t>("axis", 1), shape.size());
    const bool inf_as_zero = o.attr<std::string>("mode", "none") == "inf_as_zero";
    const auto n = static_cast<std::size_t>(shape[axis]);
    std::vector<double> values = to_doubles(*in[0]);
    std::vector<double> statistics;
    for_each_line(shape, axis, [&](std::size_t first, std::size_t step) {
        statistics.push_back(test::soft_max(values.data() + first, n, step, inf_as_zero));
    });
    std::vector<tensor> results{arithmetic_result(o, 0, shape, values)};
    if (o.outputs.size() > 1) {
        dims lines = shape;
        lines[axis] = 1;
        results.push_back(arithmetic_result(o, 1, lines, statistics));
    }
    return results;
}

// diff_src = dst * (diff_dst - sum(dst * diff_dst)) along the axis; inputs diff_dst, dst.
std::vector<tensor> oracle_softmax_backward(const op& o, const operands& in) {
    const dims& shape = in.at(0)->shape;
    const std::size_t axis = front_axis(o.attr<std::int64_t>("axis", 1), shape.size());
    const auto n = static_cast<std::size_t>(shape[axis]);
    const std::vector<double> diff_dst = to_doubles(*in[0]);
    std::vector<double> values = to_doubles(*in.at(1));
    for_each_line(shape, axis, [&](std::size_t first, std::size_t step) {
        double sum = 0.0;
        for (std::size_t i = 0; i < n; ++i)
            sum += values[first + i * step] * diff_dst[first + i * step];
        for (std::size_t i = 0; i < n; ++i)
            values[first + i * step] *= diff_dst[first + i * step] - sum;
    });
    return {arithmetic_result(o, 0, shape, values)};
}

std::vector<tensor> oracle_reduce_sum(const op& o, const operands& in) {
    const dims& shape = in.at(0)->shape;
    dims kept = shape; // extents with 1 where reduced
    for (const std::int64_t axis : o.attr<dims>("axes", {}))
        kept[front_axis(axis, shape.size())] = 1;
    const dims strides = broadcast_strides(kept, dense_strides(kept), shape);
    std::vector<double> sums(static_cast<std::size_t>(element_count(kept)), 0.0);
    const std::vector<double> values = to_doubles(*in[0]);
    auto next = values.begin();
    walk_rows<1>(shape, {strides}, [&](const auto& at, std::int64_t extent) {
        for (std::int64_t i = 0; i < extent; ++i)
            sums[static_cast<std::size_t>(at[0] + i * inner_stride(strides))] += *next++;
    });
    return {arithmetic_result(o, 0, o.outputs.at(0).shape, sums)};
}

} // namespace maskwise::bench
