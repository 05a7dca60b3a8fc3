#include "compare/tolerance.hpp"

#include "data/tensor.hpp"

#include <algorithm>
#include <initializer_list>

namespace maskwise::bench {
namespace {

double coarsest_roundoff(const graph& g) {
    double coarsest = 0.0;
    for_each_tensor(
        g, [&](const logical_tensor& t) { coarsest = std::max(coarsest, roundoff(t.dtype)); });
    if (g.fpmath_mode == "bf16" || g.fpmath_mode == "any")
        coarsest = std::max(coarsest, roundoff(data_type::bf16));
    if (g.fpmath_mode == "f16" || g.fpmath_mode == "tf32")
        coarsest = std::max(coarsest, roundoff(data_type::f16));
    return coarsest;
}

bool has_any(const graph& g, std::initializer_list<data_type> types) {
    bool found = false;
    for_each_tensor(g, [&](const logical_tensor& t) {
        found = found || std::find(types.begin(), types.end(), t.dtype) != types.end();
    });
    return found;
}

bool has_quantized(const graph& g) {
    return has_any(g, {data_type::s8, data_type::u8});
}

} // namespace

bool mixes_16_bits_and_integers(const graph& g) {
    return has_quantized(g) && has_any(g, {data_type::bf16, data_type::f16});
}

tolerance tolerance_for(const graph& g, const logical_tensor& t, bool bits_moved) {
    tolerance result;
    const bool alone = g.ops.size() == 1;
    if (!is_floating(t.dtype)) {
        const bool rounded = t.dtype == data_type::s8 || t.dtype == data_type::u8;
        result.exact = !rounded;
        result.absolute = rounded ? 1.0 : 0.0;
        result.norm_allowed = rounded && !alone;
        return result;
    }
    result.exact = bits_moved;
    if (bits_moved) return result;
    const double u = coarsest_roundoff(g);
    // f32: sums in another order and approximated exp and tanh, some 100 units of 2^-24 for one
    // op, 1000 through a chain. 16 bits: the rounding of the result, and of a few values before.
    const bool wide = u <= roundoff(data_type::f32);
    result.relative = u * (wide ? (alone ? 128.0 : 1024.0) : (alone ? 2.0 : 6.0));
    result.norm_allowed = !alone && (!wide || has_quantized(g));
    return result;
}

} // namespace maskwise::bench
