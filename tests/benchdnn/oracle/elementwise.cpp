#include "data/walk.hpp"
#include "oracle/ops.hpp"
#include "support/operations.hpp"

namespace maskwise::bench {

std::vector<tensor> oracle_elementwise(const op& o, const operands& in) {
    const auto what = test::find_operation(o.kind).value();
    const bool has_two = test::input_count(what) == 2;
    const tensor &first = *in.at(0), &second = *in.at(has_two ? 1 : 0);
    const dims shape = broadcast(first.shape, second.shape);
    const std::vector<double> a = to_doubles(first);
    const std::vector<double> b = has_two ? to_doubles(second) : a;
    const auto alpha = static_cast<double>(o.attr(o.kind == "Clamp" ? "min" : "alpha", 0.0F));
    const auto beta = static_cast<double>(o.attr("max", 0.0F));
    const auto view = [&](const tensor& t) {
        return broadcast_strides(t.shape, dense_strides(t.shape), shape);
    };
    const std::array<dims, 2> strides{view(first), view(second)};
    std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
    auto out = values.begin();
    walk_rows<2>(shape, strides, [&](const auto& at, std::int64_t extent) {
        const double* x = a.data() + at[0];
        const double* y = b.data() + at[1];
        for (std::int64_t i = 0; i < extent; ++i)
            *out++ = test::compute(what, x[i * inner_stride(strides[0])],
                                   y[i * inner_stride(strides[1])], alpha, beta);
    });
    return {arithmetic_result(o, 0, shape, values)};
}

std::vector<tensor> oracle_type_cast(const op& o, const operands& in) {
    return {arithmetic_result(o, 0, in.at(0)->shape, to_doubles(*in[0]))};
}

} // namespace maskwise::bench
