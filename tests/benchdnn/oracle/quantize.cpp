#include "oracle/ops.hpp"

#include <cmath>

namespace maskwise::bench {
namespace {

struct parameters {
    std::vector<double> scales;
    std::vector<double> zero_points; // empty: all zero
    dims strides;                    // strides of the parameters, per dim of the data
    dims group;                      // elements that share a parameter, per dim

    double zero_point(std::size_t i) const { return zero_points.empty() ? 0.0 : zero_points[i]; }
};

// Returns change(element, index of the element's parameters) for each element.
template <typename Change>
std::vector<double> per_element(const tensor& src, const parameters& p, Change change) {
    std::vector<double> values = to_doubles(src);
    dims index(src.shape.size(), 0);
    for (double& value : values) {
        std::int64_t scale_index = 0;
        for (std::size_t d = 0; d < index.size(); ++d)
            scale_index += index[d] / p.group[d] * p.strides[d];
        value = change(value, static_cast<std::size_t>(scale_index));
        test::advance(index, src.shape);
    }
    return values;
}

void set_layout(parameters& p, const op& o, const dims& shape) {
    const std::string type = o.attr<std::string>("qtype", "per_tensor");
    p.strides.assign(shape.size(), 0);
    p.group.assign(shape.size(), 1);
    if (type == "per_channel")
        p.strides.at(front_axis(o.attr<std::int64_t>("axis", 1), shape.size())) = 1;
    if (type != "per_group") return;
    p.group = o.attr<dims>("group_shape", {});
    if (p.group.size() != shape.size())
        throw input_error(o.kind + ": group_shape does not fit " + to_text(shape));
    dims groups(shape.size());
    for (std::size_t d = 0; d < shape.size(); ++d) groups[d] = shape[d] / p.group[d];
    p.strides = dense_strides(groups);
}

parameters from_attributes(const op& o, const dims& shape) {
    parameters p;
    for (const float scale : o.attr<std::vector<float>>("scales", {}))
        p.scales.push_back(static_cast<double>(scale));
    for (const std::int64_t zero : o.attr<dims>("zps", {}))
        p.zero_points.push_back(static_cast<double>(zero));
    set_layout(p, o, shape);
    return p;
}

std::vector<tensor> dequantized(const op& o, const tensor& src, const parameters& p) {
    const auto values = per_element(
        src, p, [&](double x, std::size_t i) { return (x - p.zero_point(i)) * p.scales.at(i); });
    return {arithmetic_result(o, 0, src.shape, values)};
}

} // namespace

std::vector<tensor> oracle_quantize(const op& o, const operands& in) {
    const tensor& src = *in.at(0);
    const parameters p = from_attributes(o, src.shape);
    const auto values = per_element(src, p, [&](double x, std::size_t i) {
        return std::nearbyint(x / p.scales.at(i) + p.zero_point(i));
    });
    return {arithmetic_result(o, 0, src.shape, values)};
}

std::vector<tensor> oracle_dequantize(const op& o, const operands& in) {
    return dequantized(o, *in.at(0), from_attributes(o, in[0]->shape));
}

std::vector<tensor> oracle_dynamic_dequantize(const op& o, const operands& in) {
    const tensor& src = *in.at(0);
    parameters p;
    p.scales = to_doubles(*in.at(1));
    if (in.size() > 2) p.zero_points = to_doubles(*in[2]);
    set_layout(p, o, src.shape);
    return dequantized(o, src, p);
}

} // namespace maskwise::bench
