#include "chain_memory.hpp"

#include "support/onednn_types.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace maskwise::fuzz {
namespace {

constexpr int f16_bias = 15, f16_digits = 10;
constexpr std::uint32_t f16_infinity = 31U << f16_digits, f16_quiet_nan = f16_infinity | 0x200U;

double from_f16(std::uint32_t bits) {
    const std::uint32_t fraction = bits & 0x3FFU, exponent = bits >> f16_digits & 31U;
    double value = std::ldexp(fraction + (exponent == 0 ? 0 : 1024),
                              static_cast<int>(std::max(exponent, 1U)) - f16_bias - f16_digits);
    if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
    return (bits & 0x8000U) != 0 ? -value : value;
}

std::uint16_t to_f16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const int exponent = static_cast<int>(bits >> 23 & 0xFFU) - 127 + f16_bias;
    std::uint32_t half = static_cast<std::uint32_t>(exponent) << f16_digits | (bits >> 13 & 0x3FFU);
    if (exponent >= 31) half = std::isinf(value) ? f16_infinity : f16_infinity - 1;
    if (exponent <= 0) half = 0;
    if (std::isnan(value)) half = f16_quiet_nan;
    return static_cast<std::uint16_t>(half | (bits >> 16 & 0x8000U));
}

double load(const std::byte* from, dnnl_data_type_t type) {
    std::uint16_t half = 0;
    std::int32_t whole = 0;
    switch (type) {
    case dnnl_f32:
    case dnnl_s32:
        std::memcpy(&whole, from, sizeof whole);
        return type == dnnl_s32 ? static_cast<double>(whole)
                                : static_cast<double>(std::bit_cast<float>(whole));
    case dnnl_f16:
        std::memcpy(&half, from, sizeof half);
        return from_f16(half);
    case dnnl_bf16:
        std::memcpy(&half, from, sizeof half);
        return std::bit_cast<float>(std::uint32_t{half} << 16);
    case dnnl_s8:
        return std::to_integer<std::int8_t>(*from);
    default:
        return std::to_integer<std::uint8_t>(*from);
    }
}

std::size_t offset_of(const logical_tensor& tensor, const indices& index) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * tensor.layout.strides[i];
    return static_cast<std::size_t>(offset * test::width_bytes(tensor));
}

} // namespace

double load(const laid_out& from, const indices& index) {
    return load(&from.bytes[offset_of(from.tensor, index)], from.tensor.data_type);
}

void store(std::byte* to, dnnl_data_type_t type, float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto half = type == dnnl_f16 ? to_f16(value) : static_cast<std::uint16_t>(bits >> 16);
    if (type == dnnl_f32)
        std::memcpy(to, &bits, sizeof bits);
    else
        std::memcpy(to, &half, sizeof half);
}

bool step(indices& index, const logical_tensor& tensor) {
    for (std::size_t i = index.size(); i-- > 0;) {
        if (++index[i] < tensor.dims[i]) return true;
        index[i] = 0;
    }
    return false;
}

std::size_t size_of(const logical_tensor& tensor) {
    std::int64_t last = 0;
    for (int i = 0; i < tensor.ndims; ++i) last += (tensor.dims[i] - 1) * tensor.layout.strides[i];
    return static_cast<std::size_t>((last + 1) * test::width_bytes(tensor));
}

} // namespace maskwise::fuzz
