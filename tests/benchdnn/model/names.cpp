#include "model/names.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace maskwise::bench {
namespace {

constexpr data_type_info data_type_table[] = {
    {"undef", data_type::undef, 0},     {"f16", data_type::f16, 2},
    {"bf16", data_type::bf16, 2},       {"f32", data_type::f32, 4},
    {"s32", data_type::s32, 4},         {"s8", data_type::s8, 1},
    {"u8", data_type::u8, 1},           {"f64", data_type::f64, 8},
    {"boolean", data_type::boolean, 1}, {"f8_e5m2", data_type::f8_e5m2, 1},
    {"f8_e4m3", data_type::f8_e4m3, 1}, {"s4", data_type::s4, 0},
    {"u4", data_type::u4, 0},           {"s64", data_type::s64, 8},
};

constexpr attr_info attr_table[] = {
    {"alpha", 0x1, attr_type::f32},
    {"beta", 0x2, attr_type::f32},
    {"epsilon", 0x3, attr_type::f32},
    {"max", 0x4, attr_type::f32},
    {"min", 0x5, attr_type::f32},
    {"momentum", 0x6, attr_type::f32},
    {"scales", 0x20, attr_type::f32s},
    {"axis", 0x30, attr_type::s64},
    {"begin_norm_axis", 0x31, attr_type::s64},
    {"groups", 0x32, attr_type::s64},
    {"axes", 0x40, attr_type::s64s},
    {"dilations", 0x41, attr_type::s64s},
    {"dst_shape", 0x42, attr_type::s64s},
    {"kernel", 0x43, attr_type::s64s},
    {"order", 0x44, attr_type::s64s},
    {"output_padding", 0x45, attr_type::s64s},
    {"pads_begin", 0x46, attr_type::s64s},
    {"pads_end", 0x47, attr_type::s64s},
    {"shape", 0x48, attr_type::s64s},
    {"sizes", 0x49, attr_type::s64s},
    {"src_shape", 0x4a, attr_type::s64s},
    {"strides", 0x4b, attr_type::s64s},
    {"weights_shape", 0x4c, attr_type::s64s},
    {"zps", 0x4d, attr_type::s64s},
    {"group_shape", 0x4e, attr_type::s64s, 7},
    {"exclude_pad", 0x60, attr_type::boolean},
    {"keep_dims", 0x61, attr_type::boolean},
    {"keep_stats", 0x62, attr_type::boolean},
    {"per_channel_broadcast", 0x63, attr_type::boolean},
    {"special_zero", 0x64, attr_type::boolean},
    {"transpose_a", 0x65, attr_type::boolean},
    {"transpose_b", 0x66, attr_type::boolean},
    {"use_affine", 0x67, attr_type::boolean},
    {"use_dst", 0x68, attr_type::boolean},
    {"auto_broadcast", 0x80, attr_type::string},
    {"auto_pad", 0x81, attr_type::string},
    {"coordinate_transformation_mode", 0x82, attr_type::string},
    {"data_format", 0x83, attr_type::string},
    {"mode", 0x84, attr_type::string},
    {"qtype", 0x85, attr_type::string},
    {"rounding_type", 0x86, attr_type::string},
    {"weights_format", 0x87, attr_type::string},
    {"accumulation_mode", 0x88, attr_type::string, 10},
};

constexpr op_kind_info op_kind_table[] = {
    {"Abs", 0, 0},
    {"AbsBackward", 1, 0},
    {"Add", 2, 0},
    {"AvgPool", 3, 0},
    {"AvgPoolBackward", 4, 0},
    {"BatchNormTrainingBackward", 5, 0},
    {"BatchNormForwardTraining", 6, 0},
    {"BatchNormInference", 7, 0},
    {"BiasAdd", 8, 0},
    {"BiasAddBackward", 9, 0},
    {"Clamp", 10, 0},
    {"ClampBackward", 11, 0},
    {"Concat", 12, 0},
    {"Convolution", 13, 0},
    {"ConvolutionBackwardData", 14, 0},
    {"ConvolutionBackwardWeights", 15, 0},
    {"ConvTranspose", 16, 0},
    {"ConvTransposeBackwardData", 17, 0},
    {"Dequantize", 19, 0},
    {"Divide", 20, 0},
    {"DynamicDequantize", 21, 0},
    {"DynamicQuantize", 22, 0},
    {"Elu", 23, 0},
    {"EluBackward", 24, 0},
    {"End", 25, 0},
    {"Exp", 26, 0},
    {"GELU", 27, 0},
    {"GELUBackward", 28, 0},
    {"HardSwish", 29, 0},
    {"HardSwishBackward", 30, 0},
    {"Interpolate", 31, 0},
    {"InterpolateBackward", 32, 0},
    {"LayerNorm", 33, 0},
    {"LayerNormBackward", 34, 0},
    {"LeakyReLU", 35, 0},
    {"Log", 36, 0},
    {"LogSoftmax", 37, 0},
    {"LogSoftmaxBackward", 38, 0},
    {"MatMul", 39, 0},
    {"Maximum", 40, 0},
    {"MaxPool", 41, 0},
    {"MaxPoolBackward", 42, 0},
    {"Minimum", 43, 0},
    {"Mish", 44, 0},
    {"MishBackward", 45, 0},
    {"Multiply", 46, 0},
    {"PReLU", 47, 0},
    {"PReLUBackward", 48, 0},
    {"Quantize", 49, 0},
    {"Reciprocal", 50, 0},
    {"ReduceL1", 51, 0},
    {"ReduceL2", 52, 0},
    {"ReduceMax", 53, 0},
    {"ReduceMean", 54, 0},
    {"ReduceMin", 55, 0},
    {"ReduceProd", 56, 0},
    {"ReduceSum", 57, 0},
    {"ReLU", 58, 0},
    {"ReLUBackward", 59, 0},
    {"Reorder", 60, 0},
    {"Round", 61, 0},
    {"Sigmoid", 62, 0},
    {"SigmoidBackward", 63, 0},
    {"SoftMax", 64, 0},
    {"SoftMaxBackward", 65, 0},
    {"SoftPlus", 66, 0},
    {"SoftPlusBackward", 67, 0},
    {"Sqrt", 68, 0},
    {"SqrtBackward", 69, 0},
    {"Square", 70, 0},
    {"SquaredDifference", 71, 0},
    {"StaticReshape", 72, 0},
    {"StaticTranspose", 73, 0},
    {"Subtract", 74, 0},
    {"Tanh", 75, 0},
    {"TanhBackward", 76, 0},
    {"TypeCast", 77, 0},
    {"Wildcard", 78, 0},
    {"HardSigmoid", 79, 1},
    {"HardSigmoidBackward", 80, 1},
    {"Select", 81, 2},
    {"Pow", 82, 2},
    {"GroupNorm", 83, 6},
    {"GenIndex", 84, 7},
    {"GreaterEqual", 85, 7},
    {"RMSNorm", 86, 11},
    {"Dropout", 87, 12},
};

constexpr std::string_view status_table[] = {
    "success",           "out_of_memory", "invalid_arguments", "unimplemented",
    "last_impl_reached", "runtime_error", "not_required",      "invalid_graph",
    "invalid_graph_op",  "invalid_shape", "invalid_data_type",
};

template <typename Table>
auto find_by_name(const Table& table, std::string_view name) {
    const auto* hit = std::find_if(std::begin(table), std::end(table),
                                   [&](const auto& row) { return row.name == name; });
    return hit == std::end(table) ? nullptr : hit;
}

} // namespace

std::span<const data_type_info> data_types() {
    return data_type_table;
}

std::span<const op_kind_info> op_kinds() {
    return op_kind_table;
}

const data_type_info* find_data_type(std::string_view name) {
    return find_by_name(data_type_table, name);
}

const attr_info* find_attr(std::string_view name) {
    return find_by_name(attr_table, name);
}

const op_kind_info* find_op_kind(std::string_view name) {
    return find_by_name(op_kind_table, name);
}

const data_type_info& info(data_type type) {
    for (const data_type_info& row : data_type_table)
        if (row.value == type) return row;
    throw std::logic_error("data type " + std::to_string(static_cast<int>(type)) + " has no row");
}

bool is_floating(data_type type) {
    return type == data_type::f16 || type == data_type::bf16 || type == data_type::f32 ||
           type == data_type::f64;
}

std::string status_name(int status) {
    const auto index = static_cast<std::size_t>(status);
    if (status < 0 || index >= std::size(status_table)) return "status " + std::to_string(status);
    return std::string(status_table[index]);
}

int find_status(std::string_view name) {
    const auto* hit = std::find(std::begin(status_table), std::end(status_table), name);
    return hit == std::end(status_table) ? -1 : static_cast<int>(hit - std::begin(status_table));
}

} // namespace maskwise::bench
