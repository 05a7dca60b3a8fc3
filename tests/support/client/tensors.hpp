#pragma once

// Tensors as clients of oneDNN Graph's C API describe and fill them.

#include "support/oracle.hpp"

#include "oneapi/dnnl/dnnl_graph.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace maskwise::test {

using dims = std::vector<std::int64_t>;
using logical_tensor = dnnl_graph_logical_tensor_t;

// oneDNN 3.9 introduced this property, so older headers lack it.
inline constexpr auto host_scalar = static_cast<dnnl_graph_tensor_property_t>(3);

// Row-major strides in elements, without gaps. An extent of 0 counts as 1.
dims row_major(const dims& extents);

logical_tensor strided(std::size_t id, dnnl_data_type_t type, const dims& extents,
                       const dims& strides);
logical_tensor dense(std::size_t id, dnnl_data_type_t type, const dims& extents);
logical_tensor any_layout(std::size_t id, dnnl_data_type_t type, const dims& extents);
logical_tensor unknown_rank(std::size_t id, dnnl_data_type_t type);

// Pointers for lists of the C API, valid as long as `tensors`.
std::vector<const logical_tensor*> pointers(const std::vector<logical_tensor>& tensors);

// Bytes of one element, for the types that clients here use.
std::int64_t width_bytes(const logical_tensor& tensor);

// A strided tensor and its memory; `element_bytes` overrides the type's size.
view view_of(const logical_tensor& tensor, const void* data, std::int64_t element_bytes);
view view_of(const logical_tensor& tensor, const void* data);

// Bytes up to the end of the last element.
std::size_t size_of(const logical_tensor& tensor);

// A buffer of the tensor's size. The numbers depend only on the tensor's id and the position. The
// numbers are finite in every type, and small integers in f32.
std::vector<std::uint8_t> filled_buffer(const logical_tensor& tensor);

} // namespace maskwise::test
