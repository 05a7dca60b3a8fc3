#include "chain_memory.hpp"

#include "support/numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace maskwise::fuzz {
namespace {

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
        return test::decode(half, test::f16_format);
    case dnnl_bf16:
        std::memcpy(&half, from, sizeof half);
        return test::decode(half, test::bf16_format);
    case dnnl_s8:
        return std::to_integer<std::int8_t>(*from);
    default:
        return std::to_integer<std::uint8_t>(*from);
    }
}

} // namespace

double load(const laid_out& from, const indices& index) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i)
        offset += index[i] * from.tensor.layout.strides[i];
    offset *= test::width_bytes(from.tensor);
    return load(&from.bytes[static_cast<std::size_t>(offset)], from.tensor.data_type);
}

void store(std::byte* to, dnnl_data_type_t type, float value) {
    constexpr float most_f16 = 65504;
    if (type == dnnl_f16 && std::isfinite(value)) value = std::clamp(value, -most_f16, most_f16);
    const auto format = type == dnnl_f32    ? test::f32_format
                        : type == dnnl_bf16 ? test::bf16_format
                                            : test::f16_format;
    const std::uint32_t bits = test::encode(static_cast<double>(value), format);
    std::memcpy(to, &bits, type == dnnl_f32 ? 4 : 2);
}

bool step(indices& index, const logical_tensor& tensor) {
    return test::advance(index, {tensor.dims, static_cast<std::size_t>(tensor.ndims)});
}

} // namespace maskwise::fuzz
