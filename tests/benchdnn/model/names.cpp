#include "model/names.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

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

// Attributes of one type. Their numbers are consecutive, from `first`.
struct attr_group {
    attr_type type;
    int first;
    std::vector<std::string_view> names;
};

const attr_group attr_groups[] = {
    {attr_type::f32, 0x1, {"alpha", "beta", "epsilon", "max", "min", "momentum"}},
    {attr_type::f32s, 0x20, {"scales"}},
    {attr_type::s64, 0x30, {"axis", "begin_norm_axis", "groups"}},
    {attr_type::s64s,
     0x40,
     {"axes", "dilations", "dst_shape", "kernel", "order", "output_padding", "pads_begin",
      "pads_end", "shape", "sizes", "src_shape", "strides", "weights_shape", "zps", "group_shape"}},
    {attr_type::boolean,
     0x60,
     {"exclude_pad", "keep_dims", "keep_stats", "per_channel_broadcast", "special_zero",
      "transpose_a", "transpose_b", "use_affine", "use_dst"}},
    {attr_type::string,
     0x80,
     {"auto_broadcast", "auto_pad", "coordinate_transformation_mode", "data_format", "mode",
      "qtype", "rounding_type", "weights_format", "accumulation_mode"}},
};

// Op kinds in the order of their numbers, from 0.
constexpr const char* op_kind_names = R"(
    Abs AbsBackward Add AvgPool AvgPoolBackward BatchNormTrainingBackward BatchNormForwardTraining
    BatchNormInference BiasAdd BiasAddBackward Clamp ClampBackward Concat Convolution
    ConvolutionBackwardData ConvolutionBackwardWeights ConvTranspose ConvTransposeBackwardData
    ConvTransposeBackwardWeights Dequantize Divide DynamicDequantize DynamicQuantize Elu
    EluBackward End Exp GELU GELUBackward HardSwish HardSwishBackward Interpolate
    InterpolateBackward LayerNorm LayerNormBackward LeakyReLU Log LogSoftmax LogSoftmaxBackward
    MatMul Maximum MaxPool MaxPoolBackward Minimum Mish MishBackward Multiply PReLU PReLUBackward
    Quantize Reciprocal ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReLU
    ReLUBackward Reorder Round Sigmoid SigmoidBackward SoftMax SoftMaxBackward SoftPlus
    SoftPlusBackward Sqrt SqrtBackward Square SquaredDifference StaticReshape StaticTranspose
    Subtract Tanh TanhBackward TypeCast Wildcard HardSigmoid HardSigmoidBackward Select Pow
    GroupNorm GenIndex GreaterEqual RMSNorm Dropout)";

// Op kinds newer than oneDNN 3.0: the first number of a group, and the minor version that added the
// group.
constexpr std::pair<int, int> later_op_kinds[] = {{79, 1}, {81, 2},  {83, 6},
                                                  {84, 7}, {86, 11}, {87, 12}};

constexpr std::string_view status_table[] = {
    "success",           "out_of_memory", "invalid_arguments", "unimplemented",
    "last_impl_reached", "runtime_error", "not_required",      "invalid_graph",
    "invalid_graph_op",  "invalid_shape", "invalid_data_type",
};

} // namespace

const data_type_info* find_data_type(std::string_view name) {
    const auto* hit = std::ranges::find(data_type_table, name, &data_type_info::name);
    return hit == std::end(data_type_table) ? nullptr : hit;
}

std::optional<attr_info> find_attr(std::string_view name) {
    for (const auto& [type, first, names] : attr_groups)
        if (const auto hit = std::ranges::find(names, name); hit != names.end())
            return attr_info{first + static_cast<int>(hit - names.begin()), type,
                             name == "group_shape"         ? 7
                             : name == "accumulation_mode" ? 10
                                                           : 0};
    return std::nullopt;
}

std::optional<op_kind_info> find_op_kind(std::string_view name) {
    std::istringstream names(op_kind_names);
    op_kind_info info{0, 0};
    for (std::string kind; names >> kind; ++info.value) {
        if (kind != name) continue;
        for (const auto& [first, minor] : later_op_kinds)
            if (info.value >= first) info.since_minor = minor;
        return info;
    }
    return std::nullopt;
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
