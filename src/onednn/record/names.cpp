#include "onednn/record/names.hpp"

#include <cstddef>

namespace maskwise::onednn {
namespace {

// Indexed by oneDNN's number.
// clang-format off
constexpr const char* operators[] = {
    "Abs", "AbsBackward", "Add", "AvgPool", "AvgPoolBackward", "BatchNormTrainingBackward",
    "BatchNormForwardTraining", "BatchNormInference", "BiasAdd", "BiasAddBackward", "Clamp",
    "ClampBackward", "Concat", "Convolution", "ConvolutionBackwardData",
    "ConvolutionBackwardWeights", "ConvTranspose", "ConvTransposeBackwardData",
    "ConvTransposeBackwardWeights", "Dequantize", "Divide", "DynamicDequantize", "DynamicQuantize",
    "Elu", "EluBackward", "End", "Exp", "GELU", "GELUBackward", "HardSwish", "HardSwishBackward",
    "Interpolate", "InterpolateBackward", "LayerNorm", "LayerNormBackward", "LeakyReLU", "Log",
    "LogSoftmax", "LogSoftmaxBackward", "MatMul", "Maximum", "MaxPool", "MaxPoolBackward",
    "Minimum", "Mish", "MishBackward", "Multiply", "PReLU", "PReLUBackward", "Quantize",
    "Reciprocal", "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReLU", "ReLUBackward", "Reorder", "Round", "Sigmoid", "SigmoidBackward",
    "SoftMax", "SoftMaxBackward", "SoftPlus", "SoftPlusBackward", "Sqrt", "SqrtBackward", "Square",
    "SquaredDifference", "StaticReshape", "StaticTranspose", "Subtract", "Tanh", "TanhBackward",
    "TypeCast", "Wildcard", "HardSigmoid", "HardSigmoidBackward", "Select", "Pow", "GroupNorm",
    "GenIndex", "GreaterEqual", "RMSNorm", "Dropout"};
// clang-format on

constexpr const char* data_types[] = {"undef", "f16",  "bf16",    "f32",     "s32",     "s8",
                                      "u8",    "f64",  "boolean", "f8_e5m2", "f8_e4m3", "s4",
                                      "u4",    "e8m0", "f4_e2m1", "f4_e3m0", "s64"};
constexpr const char* properties[] = {"undef", "variable", "constant", "host_scalar"};
constexpr const char* fpmath_modes[] = {"strict", "bf16", "f16", "any", "tf32"};

template <std::size_t Count>
const char* name_of(const char* const (&names)[Count], int number, const char* fallback) {
    const auto index = static_cast<std::size_t>(number);
    return index < Count ? names[index] : fallback;
}

template <std::size_t Count>
std::string name_or_number(const char* const (&names)[Count], int number) {
    const char* const name = name_of(names, number, nullptr);
    return name != nullptr ? name : std::to_string(number);
}

// One row for each type of attribute: f32, f32 list, integer, integer list, boolean, text. `first`
// is the number of the row's first name.
constexpr int per_type = 16;
constexpr struct {
    int first;
    bool is_list;
    const char* names[per_type];
} attributes[] = {
    {0x1, false, {"alpha", "beta", "epsilon", "max", "min", "momentum"}},
    {0x20, true, {"scales"}},
    {0x30, false, {"axis", "begin_norm_axis", "groups"}},
    {0x40,
     true,
     {"axes", "dilations", "dst_shape", "kernel", "order", "output_padding", "pads_begin",
      "pads_end", "shape", "sizes", "src_shape", "strides", "weights_shape", "zps", "group_shape"}},
    {0x60,
     false,
     {"exclude_pad", "keep_dims", "keep_stats", "per_channel_broadcast", "special_zero",
      "transpose_a", "transpose_b", "use_affine", "use_dst"}},
    {0x80,
     false,
     {"auto_broadcast", "auto_pad", "coordinate_transformation_mode", "data_format", "mode",
      "qtype", "rounding_type", "weights_format", "accumulation_mode"}},
};

} // namespace

std::string operator_name(int number) {
    return name_or_number(operators, number);
}

std::string data_type_name(int number) {
    return name_or_number(data_types, number);
}

const char* property_name(int number) {
    return name_of(properties, number, "undef");
}

const char* fpmath_name(int number) {
    return name_of(fpmath_modes, number, "unknown");
}

attribute_words words_of_attribute(int number) {
    for (const auto& row : attributes) {
        const int index = number - row.first;
        if (index >= 0 && index < per_type && row.names[index] != nullptr)
            return {row.names[index], row.is_list};
    }
    return {std::to_string(number), true};
}

} // namespace maskwise::onednn
