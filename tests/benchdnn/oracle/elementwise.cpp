#include "data/walk.hpp"
#include "oracle/ops.hpp"

#include <algorithm>
#include <cmath>

namespace maskwise::bench {
namespace {

using unary = double (*)(double);
using binary = double (*)(double, double);

double erf_gelu(double x) {
    return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
}

const std::map<std::string, unary>& unary_table() {
    static const std::map<std::string, unary> table{
        {"Abs", [](double x) { return std::fabs(x); }},
        {"Exp", [](double x) { return std::exp(x); }},
        {"GELU", erf_gelu},
        {"Log", [](double x) { return std::log(x); }},
        {"ReLU", [](double x) { return std::max(x, 0.0); }},
        {"Reciprocal", [](double x) { return 1.0 / x; }},
        {"Round", [](double x) { return std::nearbyint(x); }},
        {"Sigmoid", [](double x) { return 1.0 / (1.0 + std::exp(-x)); }},
        {"Sqrt", [](double x) { return std::sqrt(x); }},
        {"Square", [](double x) { return x * x; }},
        {"Tanh", [](double x) { return std::tanh(x); }},
    };
    return table;
}

const std::map<std::string, binary>& binary_table() {
    static const std::map<std::string, binary> table{
        {"Add", [](double a, double b) { return a + b; }},
        {"Divide", [](double a, double b) { return a / b; }},
        {"GreaterEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
        {"Maximum", [](double a, double b) { return std::max(a, b); }},
        {"Minimum", [](double a, double b) { return std::min(a, b); }},
        {"Multiply", [](double a, double b) { return a * b; }},
        {"Pow", [](double a, double b) { return std::pow(a, b); }},
        {"SquaredDifference", [](double a, double b) { return (a - b) * (a - b); }},
        {"Subtract", [](double a, double b) { return a - b; }},
    };
    return table;
}

} // namespace

bool is_unary(const std::string& kind) {
    return unary_table().count(kind) > 0;
}

bool is_binary(const std::string& kind) {
    return binary_table().count(kind) > 0;
}

std::vector<tensor> oracle_unary(const op& o, const operands& in) {
    std::vector<double> values = to_doubles(*in.at(0));
    std::ranges::transform(values, values.begin(), unary_table().at(o.kind));
    return {arithmetic_result(o, 0, in[0]->shape, values)};
}

std::vector<tensor> oracle_binary(const op& o, const operands& in) {
    const binary combine = binary_table().at(o.kind);
    const dims shape = broadcast(in.at(0)->shape, in.at(1)->shape);
    const std::vector<double> a = to_doubles(*in[0]);
    const std::vector<double> b = to_doubles(*in[1]);
    const auto view = [&](const tensor& t) {
        return broadcast_strides(t.shape, dense_strides(t.shape), shape);
    };
    const std::array<dims, 2> strides{view(*in[0]), view(*in[1])};
    std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
    auto out = values.begin();
    walk_rows<2>(shape, strides, [&](const auto& at, std::int64_t extent) {
        const double* x = a.data() + at[0];
        const double* y = b.data() + at[1];
        for (std::int64_t i = 0; i < extent; ++i)
            *out++ = combine(x[i * inner_stride(strides[0])], y[i * inner_stride(strides[1])]);
    });
    return {arithmetic_result(o, 0, shape, values)};
}

std::vector<tensor> oracle_type_cast(const op& o, const operands& in) {
    return {arithmetic_result(o, 0, in.at(0)->shape, to_doubles(*in[0]))};
}

} // namespace maskwise::bench
