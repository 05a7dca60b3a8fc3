#include "oracle/ops.hpp"
#include "support/oracle.hpp"

#include <cstring>

namespace maskwise::bench {
namespace {

// Converts a source of Select to `type`. If arithmetic computed only one source, the sources have
// different types, and both are converted to f64.
tensor widened(const tensor& t, data_type type) {
    return t.dtype == type ? t : from_doubles(type, t.shape, to_doubles(t));
}

test::view view_of(const tensor& t) {
    return test::dense_view(t.bytes.data(), t.shape, static_cast<std::int64_t>(t.width()));
}

} // namespace

std::vector<tensor> oracle_select(const op& o, const operands& in) {
    const tensor& cond = *in.at(0);
    const bool equal_types = in.at(1)->dtype == in.at(2)->dtype;
    const data_type type = equal_types ? in[1]->dtype : data_type::f64;
    const tensor src_0 = widened(*in[1], type);
    const tensor src_1 = widened(*in[2], type);
    if (o.attr<std::string>("auto_broadcast", "numpy") == "none" &&
        (cond.shape != src_0.shape || src_0.shape != src_1.shape))
        throw input_error("Select: shapes differ, auto_broadcast is none");
    tensor dst(type, broadcast(src_0.shape, src_1.shape));
    if (broadcast(cond.shape, dst.shape) != dst.shape)
        throw input_error("Select: cond " + to_text(cond.shape) + " is larger than " +
                          to_text(dst.shape));
    test::select_reference(view_of(cond), view_of(src_0), view_of(src_1), view_of(dst),
                           static_cast<std::int64_t>(dst.width()));
    return {dst};
}

std::vector<tensor> oracle_transpose(const op& o, const operands& in) {
    const tensor& src = *in.at(0);
    const dims order = o.attr<dims>("order", {});
    const dims strides = dense_strides(src.shape);
    dims shape;
    dims permuted;
    for (const std::int64_t axis : order) {
        const std::size_t from = front_axis(axis, src.shape.size());
        shape.push_back(src.shape[from]);
        permuted.push_back(strides[from]);
    }
    tensor dst(src.dtype, shape);
    const auto width = static_cast<std::int64_t>(src.width());
    std::byte* out = dst.bytes.data();
    test::walk<1>(shape, {permuted}, [&](const auto& offsets) {
        std::memcpy(out, src.bytes.data() + offsets[0] * width, static_cast<std::size_t>(width));
        out += width;
    });
    return {dst};
}

std::vector<tensor> oracle_reshape(const op& o, const operands& in) {
    tensor dst = *in.at(0);
    dst.shape = o.outputs.at(0).shape;
    if (dst.count() != in[0]->count())
        throw input_error("cannot reshape " + to_text(in[0]->shape) + " to " + to_text(dst.shape));
    return {dst};
}

std::vector<tensor> oracle_reorder(const op& o, const operands& in) {
    if (o.inputs.at(0).dtype == o.outputs.at(0).dtype) return {*in.at(0)};
    return {arithmetic_result(o, 0, in.at(0)->shape, to_doubles(*in[0]))};
}

} // namespace maskwise::bench
