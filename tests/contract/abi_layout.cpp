// Maskwise declares oneDNN's C ABI itself (src/onednn/library/abi.hpp, functions.inc). This file
// compiles only if functions, struct sizes and most constants match the included oneDNN headers.

#include "oneapi/dnnl/dnnl.h"
#include "oneapi/dnnl/dnnl_graph.h"
#include "oneapi/dnnl/dnnl_version.h"
#include "onednn/library/abi.hpp"

#include <cstddef>
#include <type_traits>

namespace {

using namespace maskwise::onednn;

// Maskwise passes enumerations as int and names structs differently. All other types must be equal.
template <typename T>
struct as_maskwise {
    using type = std::conditional_t<std::is_enum_v<T>, int, T>;
};
template <>
struct as_maskwise<dnnl_graph_logical_tensor_t> {
    using type = abi::logical_tensor;
};
template <>
struct as_maskwise<dnnl_graph_inplace_pair_t> {
    using type = abi::inplace_pair;
};
template <typename T>
struct as_maskwise<const T> {
    using type = const typename as_maskwise<T>::type;
};
template <typename T>
struct as_maskwise<T*> {
    using type = typename as_maskwise<T>::type*;
};
template <typename Result, typename... Parameters>
struct as_maskwise<Result (*)(Parameters...)> {
    using type = typename as_maskwise<Result>::type (*)(typename as_maskwise<Parameters>::type...);
};

constexpr int header_version = DNNL_VERSION_MAJOR * 100 + DNNL_VERSION_MINOR;
static_assert(header_version >= 302);

namespace declared {
#define FORWARD(name, since, parameters, arguments) using name = abi::status(*) parameters;
#define HOOK(name, since, parameters, arguments) using name = abi::status(*) parameters;
#include "onednn/library/functions.inc"
#undef HOOK
#undef FORWARD
} // namespace declared

#define CHECK_FUNCTION(name)                                                                       \
    static_assert(std::is_same_v<as_maskwise<decltype(&dnnl_graph_##name)>::type, declared::name>, \
                  #name " is declared differently in oneDNN's headers")
#include "header_functions.inc"

static_assert(sizeof(abi::logical_tensor) == sizeof(dnnl_graph_logical_tensor_t));
static_assert(alignof(abi::logical_tensor) == alignof(dnnl_graph_logical_tensor_t));
#define CHECK_FIELD(field)                                                                         \
    static_assert(offsetof(abi::logical_tensor, field) ==                                          \
                  offsetof(dnnl_graph_logical_tensor_t, field))
CHECK_FIELD(id);
CHECK_FIELD(ndims);
CHECK_FIELD(dims);
CHECK_FIELD(data_type);
CHECK_FIELD(property);
CHECK_FIELD(layout_type);
CHECK_FIELD(layout);
static_assert(sizeof(abi::inplace_pair) == sizeof(dnnl_graph_inplace_pair_t));
static_assert(sizeof(abi::version) == sizeof(dnnl_version_t));
static_assert(offsetof(abi::version, cpu_runtime) == offsetof(dnnl_version_t, cpu_runtime));

#define CHECK_VALUE(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
CHECK_VALUE(abi::success, dnnl_success);
CHECK_VALUE(abi::out_of_memory, dnnl_out_of_memory);
CHECK_VALUE(abi::invalid_arguments, dnnl_invalid_arguments);
CHECK_VALUE(abi::unimplemented, dnnl_unimplemented);
CHECK_VALUE(abi::runtime_error, dnnl_runtime_error);
CHECK_VALUE(abi::invalid_shape, dnnl_invalid_shape);
CHECK_VALUE(abi::max_ndims, DNNL_MAX_NDIMS);
CHECK_VALUE(abi::unknown_ndims, DNNL_GRAPH_UNKNOWN_NDIMS);
static_assert(abi::unknown_dim == DNNL_GRAPH_UNKNOWN_DIM);
CHECK_VALUE(abi::runtime_threadpool, DNNL_RUNTIME_THREADPOOL);
CHECK_VALUE(abi::runtime_sycl, DNNL_RUNTIME_SYCL);
CHECK_VALUE(abi::engine_cpu, dnnl_cpu);
CHECK_VALUE(abi::layout_undef, dnnl_graph_layout_type_undef);
CHECK_VALUE(abi::layout_any, dnnl_graph_layout_type_any);
CHECK_VALUE(abi::layout_strided, dnnl_graph_layout_type_strided);
CHECK_VALUE(abi::layout_opaque, dnnl_graph_layout_type_opaque);
CHECK_VALUE(abi::property_variable, dnnl_graph_tensor_property_variable);
CHECK_VALUE(abi::property_constant, dnnl_graph_tensor_property_constant);
CHECK_VALUE(abi::type_f16, dnnl_f16);
CHECK_VALUE(abi::type_bf16, dnnl_bf16);
CHECK_VALUE(abi::type_f32, dnnl_f32);
CHECK_VALUE(abi::type_f64, dnnl_f64);
CHECK_VALUE(abi::type_i32, dnnl_s32);
CHECK_VALUE(abi::type_i8, dnnl_s8);
CHECK_VALUE(abi::type_u8, dnnl_u8);
CHECK_VALUE(abi::type_boolean, dnnl_boolean);
#if DNNL_VERSION_MAJOR * 100 + DNNL_VERSION_MINOR >= 307 // older headers lack some operators
#define MASKWISE_ROW_UNARY(name, onednn, ...) CHECK_VALUE(onednn, dnnl_graph_op_##name);
#define MASKWISE_ROW_BINARY(name, reversed_operands, onednn, ...)                                  \
    CHECK_VALUE(onednn, dnnl_graph_op_##name);
#include "kernel/rows/operators.inc"
CHECK_VALUE(abi::op_kind_greater_equal, dnnl_graph_op_greater_equal);
#endif
CHECK_VALUE(abi::op_kind_type_cast, dnnl_graph_op_type_cast);
CHECK_VALUE(abi::op_kind_quantize, dnnl_graph_op_quantize);
CHECK_VALUE(abi::op_kind_select, dnnl_graph_op_select);
CHECK_VALUE(abi::op_kind_mat_mul, dnnl_graph_op_matmul);
CHECK_VALUE(abi::op_kind_exp, dnnl_graph_op_exp);
CHECK_VALUE(abi::op_kind_reduce_sum, dnnl_graph_op_reduce_sum);
CHECK_VALUE(abi::op_kind_reorder, dnnl_graph_op_reorder);
CHECK_VALUE(abi::op_kind_static_transpose, dnnl_graph_op_static_transpose);
CHECK_VALUE(abi::attr_alpha, dnnl_graph_op_attr_alpha);
CHECK_VALUE(abi::attr_scales, dnnl_graph_op_attr_scales);
CHECK_VALUE(abi::attr_zps, dnnl_graph_op_attr_zps);
CHECK_VALUE(abi::attr_order, dnnl_graph_op_attr_order);
CHECK_VALUE(abi::attr_axes, dnnl_graph_op_attr_axes);
CHECK_VALUE(abi::attr_keep_dims, dnnl_graph_op_attr_keep_dims);
CHECK_VALUE(abi::attr_transpose_a, dnnl_graph_op_attr_transpose_a);
CHECK_VALUE(abi::attr_transpose_b, dnnl_graph_op_attr_transpose_b);
CHECK_VALUE(abi::policy_fusion, dnnl_graph_partition_policy_fusion);
CHECK_VALUE(abi::attr_auto_broadcast, dnnl_graph_op_attr_auto_broadcast);

} // namespace

int main() {
    return 0;
}
