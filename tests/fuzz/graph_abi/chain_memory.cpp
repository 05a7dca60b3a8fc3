#include "chain_memory.hpp"

#include "support/onednn_types.hpp"

#include <bit>
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
