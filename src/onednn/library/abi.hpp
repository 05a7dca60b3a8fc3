#pragma once

// The part of oneDNN Graph's C ABI that Maskwise uses. Does not include oneDNN's headers, because
// one plugin binary serves every oneDNN from 3.2 on. tests/contract/abi_layout.cpp compares the
// functions, the struct sizes and most constants with each installed oneDNN's headers. Enumerations
// are passed as int, because a newer library may have other values.

#include <cstddef>
#include <cstdint>

extern "C" {
struct dnnl_engine;
struct dnnl_stream;
struct dnnl_graph_allocator;
struct dnnl_graph_tensor;
struct dnnl_graph_op;
struct dnnl_graph_graph;
struct dnnl_graph_partition;
struct dnnl_graph_compiled_partition;
}

namespace maskwise::onednn::abi {

using engine = dnnl_engine*;
using stream = dnnl_stream*;
using allocator = dnnl_graph_allocator*;
using tensor = dnnl_graph_tensor*;
using const_tensor = const dnnl_graph_tensor*;
using op = dnnl_graph_op*;
using const_op = const dnnl_graph_op*;
using graph = dnnl_graph_graph*;
using const_graph = const dnnl_graph_graph*;
using partition = dnnl_graph_partition*;
using const_partition = const dnnl_graph_partition*;
using compiled_partition = dnnl_graph_compiled_partition*;
using const_compiled_partition = const dnnl_graph_compiled_partition*;

using status = int;
inline constexpr status success = 0;
inline constexpr status out_of_memory = 1;
inline constexpr status invalid_arguments = 2;
inline constexpr status unimplemented = 3;
inline constexpr status runtime_error = 5;
inline constexpr status invalid_shape = 9;

inline constexpr int max_ndims = 12;
inline constexpr int unknown_ndims = -1;
inline constexpr std::int64_t unknown_dim = INT64_MIN;

struct logical_tensor {
    std::size_t id;
    int ndims;
    std::int64_t dims[max_ndims];
    int data_type;
    int property;
    int layout_type;
    union {
        std::int64_t strides[max_ndims];
        std::size_t layout_id;
    } layout;
};

struct inplace_pair {
    std::size_t input_id;
    std::size_t output_id;
};

struct version {
    int major;
    int minor;
    int patch;
    const char* hash;
    unsigned cpu_runtime;
    unsigned gpu_runtime;
};

inline constexpr unsigned runtime_threadpool = 8;
inline constexpr unsigned runtime_sycl = 512;

enum engine_kind : int { engine_cpu = 1 };
enum layout_type : int { layout_undef = 0, layout_any = 1, layout_strided = 2, layout_opaque = 3 };
enum property : int {
    property_undef = 0,
    property_variable = 1,
    property_constant = 2,
    property_host_scalar = 3
};

// oneDNN's types by Maskwise's names, for example type_i32 for s32. Types unknown to oneDNN are 0
// (undef).
enum data_type : int {
#define MASKWISE_DATA_TYPE(name, width, onednn, ...) type_##name = onednn,
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE
};

// The operators that the matcher distinguishes, by Maskwise's names. Element-wise operators are in
// kernel/rows/operators.inc.
#define MASKWISE_ONEDNN_OPERATORS(F)                                                               \
    F(exp, 26), F(mat_mul, 39), F(quantize, 49), F(reduce_sum, 57), F(reorder, 60),                \
        F(soft_max, 64), F(static_transpose, 73), F(type_cast, 77), F(select, 81),                 \
        F(gen_index, 84), F(greater_equal, 85)
#define F(name, number) op_kind_##name = number
enum op_kind : int { MASKWISE_ONEDNN_OPERATORS(F) };
#undef F

inline constexpr int attr_none = 0x0; // not an attribute of any operator
inline constexpr int attr_alpha = 0x1;
inline constexpr int attr_scales = 0x20;
inline constexpr int attr_axis = 0x30;
inline constexpr int attr_axes = 0x40;
inline constexpr int attr_order = 0x44;
inline constexpr int attr_zps = 0x4D;
inline constexpr int attr_keep_dims = 0x61;
inline constexpr int attr_transpose_a = 0x65;
inline constexpr int attr_transpose_b = 0x66;
inline constexpr int attr_mode = 0x84;
inline constexpr int attr_auto_broadcast = 0x80;
inline constexpr int policy_fusion = 1;
inline constexpr int dump_subgraph = 1;

// Maskwise only forwards these callbacks and objects.
using host_allocate = void* (*)(std::size_t, std::size_t);
using host_deallocate = void (*)(void*);
using sycl_allocate = void* (*)(std::size_t, std::size_t, const void*, const void*);
using sycl_deallocate = void (*)(void*, const void*, const void*, void*);
using opaque_callback = void (*)();
using ocl_handle = void*;

} // namespace maskwise::onednn::abi
