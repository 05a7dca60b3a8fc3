#include "reference.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace maskwise::fuzz {
namespace {

using extents = std::vector<std::int64_t>;
constexpr std::int64_t large = 1 << 20;

extents extents_of(const logical_tensor& tensor) {
    return {tensor.dims, tensor.dims + std::max(tensor.ndims, 0)};
}

bool is_large(const logical_tensor& tensor) {
    for (int i = 0; i < tensor.ndims; ++i)
        if (tensor.dims[i] > large || tensor.layout.strides[i] > large) return true;
    return false;
}

bool has_rank(const logical_tensor& tensor) {
    return tensor.ndims >= 0 && tensor.ndims <= DNNL_MAX_NDIMS;
}

bool all_at_least_0(const std::int64_t* numbers, int count) {
    return std::all_of(numbers, numbers + count, [](std::int64_t n) { return n >= 0; });
}

bool is_empty(const extents& shape) {
    return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

bool can_be_read(const logical_tensor& input) {
    return has_rank(input) && all_at_least_0(input.dims, input.ndims) &&
           input.layout_type == dnnl_graph_layout_type_strided &&
           all_at_least_0(input.layout.strides, input.ndims);
}

bool is_value_type(dnnl_data_type_t type) {
    return type == dnnl_f32 || type == dnnl_bf16 || type == dnnl_f16;
}

bool types_fit(const logical_tensor& cond, const logical_tensor& src_0, const logical_tensor& src_1,
               const logical_tensor& dst) {
    return cond.data_type == dnnl_boolean && is_value_type(src_0.data_type) &&
           src_1.data_type == src_0.data_type && dst.data_type == src_0.data_type;
}

std::optional<extents> infer(const op_description& select, const extents& cond,
                             const extents& src_0, const extents& src_1) {
    if (select.auto_broadcast == "none")
        return cond == src_0 && src_0 == src_1 ? std::optional(src_0) : std::nullopt;
    if (!select.auto_broadcast.empty() && select.auto_broadcast != "numpy") return std::nullopt;
    return test::select_shape(cond, src_0, src_1, false);
}

bool dims_agree(const logical_tensor& dst, const extents& inferred) {
    if (dst.ndims == -1) return true;
    if (dst.ndims != std::ssize(inferred)) return false;
    for (int i = 0; i < dst.ndims; ++i)
        if (dst.dims[i] != DNNL_GRAPH_UNKNOWN_DIM &&
            dst.dims[i] != inferred[static_cast<std::size_t>(i)])
            return false;
    return true;
}

bool shape_is_given(const logical_tensor& dst) {
    return dst.ndims >= 0 && all_at_least_0(dst.dims, dst.ndims);
}

// Whether dimensions nest: each stride is at least the span of all dimensions with smaller strides.
bool elements_are_apart(const logical_tensor& dst) {
    std::vector<std::pair<std::int64_t, std::int64_t>> nest;
    for (int i = 0; i < dst.ndims; ++i)
        if (dst.dims[i] != 1) nest.emplace_back(dst.layout.strides[i], dst.dims[i]);
    std::sort(nest.begin(), nest.end());
    std::int64_t inside = 1;
    for (const auto& [stride, extent] : nest) {
        if (stride < inside) return false;
        inside += (extent - 1) * stride;
    }
    return true;
}

struct operands {
    const logical_tensor *cond, *src_0, *src_1, *dst;
};

std::optional<operands> find_all(const op_description& select, const compile_description& request) {
    const operands all{
        find(request.inputs, select.inputs[0].id), find(request.inputs, select.inputs[1].id),
        find(request.inputs, select.inputs[2].id), find(request.outputs, select.outputs[0].id)};
    if (!all.cond || !all.src_0 || !all.src_1 || !all.dst) return std::nullopt;
    return all;
}

bool is_odd(const logical_tensor& tensor) {
    return (has_rank(tensor) && is_large(tensor)) || tensor.property == 3 || tensor.ndims < -1 ||
           tensor.ndims > DNNL_MAX_NDIMS;
}

} // namespace

const logical_tensor* find(const std::vector<logical_tensor>& tensors, std::size_t id) {
    const auto position = std::find_if(tensors.begin(), tensors.end(),
                                       [id](const auto& tensor) { return tensor.id == id; });
    return position == tensors.end() ? nullptr : &*position;
}

bool is_select(const op_description& op) {
    return op.kind == dnnl_graph_op_select && !op.odd_attribute && op.inputs.size() == 3 &&
           op.outputs.size() == 1 &&
           types_fit(op.inputs[0], op.inputs[1], op.inputs[2], op.outputs[0]);
}

verdict judge(const op_description& select, const compile_description& request) {
    const auto all = find_all(select, request);
    if (!all) return verdict::must_refuse;
    const auto& [cond, src_0, src_1, dst] = *all;
    for (const auto* list : {&request.inputs, &request.outputs})
        for (const auto& tensor : *list)
            if (is_odd(tensor)) return verdict::either;
    if (!can_be_read(*cond) || !can_be_read(*src_0) || !can_be_read(*src_1))
        return verdict::must_refuse;
    if (!types_fit(*cond, *src_0, *src_1, *dst)) return verdict::must_refuse;
    const auto shape = infer(select, extents_of(*cond), extents_of(*src_0), extents_of(*src_1));
    if (!shape || !dims_agree(*dst, *shape)) return verdict::must_refuse;
    if (dst->layout_type == dnnl_graph_layout_type_any) return verdict::must_work;
    if (dst->layout_type != dnnl_graph_layout_type_strided) return verdict::must_refuse;
    if (!shape_is_given(*dst)) return verdict::must_work;
    if (is_empty(*shape)) return verdict::either;
    const bool apart = all_at_least_0(dst->layout.strides, dst->ndims) && elements_are_apart(*dst);
    return apart ? verdict::must_work : verdict::must_refuse;
}

std::vector<std::int64_t> expected_extents(const op_description& select,
                                           const compile_description& request) {
    const auto all = find_all(select, request);
    return infer(select, extents_of(*all->cond), extents_of(*all->src_0), extents_of(*all->src_1))
        .value_or(extents{-1});
}

} // namespace maskwise::fuzz
