#include "support/client/tensors.hpp"

#include "support/numbers.hpp"

#include <algorithm>
#include <cstring>

namespace maskwise::test {

dims row_major(const dims& extents) {
    return dense_view(nullptr, extents, 1).strides_bytes;
}

logical_tensor strided(std::size_t id, dnnl_data_type_t type, const dims& extents,
                       const dims& strides) {
    logical_tensor tensor = any_layout(id, type, extents);
    tensor.layout_type = dnnl_graph_layout_type_strided;
    std::copy(strides.begin(), strides.end(), tensor.layout.strides);
    return tensor;
}

logical_tensor dense(std::size_t id, dnnl_data_type_t type, const dims& extents) {
    return strided(id, type, extents, row_major(extents));
}

logical_tensor any_layout(std::size_t id, dnnl_data_type_t type, const dims& extents) {
    logical_tensor tensor{};
    tensor.id = id;
    tensor.ndims = static_cast<int>(extents.size());
    tensor.data_type = type;
    tensor.layout_type = dnnl_graph_layout_type_any;
    std::copy(extents.begin(), extents.end(), tensor.dims);
    return tensor;
}

logical_tensor unknown_rank(std::size_t id, dnnl_data_type_t type) {
    logical_tensor tensor = strided(id, type, {}, {});
    tensor.ndims = DNNL_GRAPH_UNKNOWN_NDIMS;
    return tensor;
}

std::vector<const logical_tensor*> pointers(const std::vector<logical_tensor>& tensors) {
    std::vector<const logical_tensor*> result;
    for (const auto& tensor : tensors) result.push_back(&tensor);
    return result;
}

std::int64_t width_bytes(const logical_tensor& tensor) {
    return std::max<std::int64_t>(1, width_bytes(static_cast<element>(tensor.data_type)));
}

view view_of(const logical_tensor& tensor, const void* data, std::int64_t element_bytes) {
    const int rank = std::max(tensor.ndims, 0);
    view result{static_cast<std::byte*>(const_cast<void*>(data)),
                {tensor.dims, tensor.dims + rank},
                {tensor.layout.strides, tensor.layout.strides + rank}};
    for (std::int64_t& stride : result.strides_bytes) stride *= element_bytes;
    return result;
}

view view_of(const logical_tensor& tensor, const void* data) {
    return view_of(tensor, data, width_bytes(tensor));
}

std::size_t size_of(const logical_tensor& tensor) {
    return static_cast<std::size_t>(span_bytes(view_of(tensor, nullptr), width_bytes(tensor)));
}

namespace {

// A hash, so that neighbouring elements have unrelated bits.
std::uint32_t mixed(std::uint32_t value) {
    value = (value ^ (value >> 16)) * 0x85ebca6bU;
    value = (value ^ (value >> 13)) * 0xc2b2ae35U;
    return value ^ (value >> 16);
}

} // namespace

std::vector<std::uint8_t> filled_buffer(const logical_tensor& tensor) {
    std::vector<std::uint8_t> bytes(size_of(tensor));
    const auto width = static_cast<std::size_t>(width_bytes(tensor));
    for (std::size_t i = 0; i * width < bytes.size(); ++i) {
        const std::uint32_t seed = mixed(static_cast<std::uint32_t>(i * 16 + tensor.id));
        if (width == 4) {
            const auto value = static_cast<float>(seed >> 20);
            std::memcpy(&bytes[i * 4], &value, 4);
        } else if (width == 2) { // finite in f16 and in bf16
            const auto value = static_cast<std::uint16_t>(0x3c00 + (seed >> 24));
            std::memcpy(&bytes[i * 2], &value, 2);
        } else {
            bytes[i] = (seed >> 28) % 2;
        }
    }
    return bytes;
}

} // namespace maskwise::test
