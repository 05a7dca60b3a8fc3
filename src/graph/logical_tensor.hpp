#pragma once

#include "maskwise/maskwise.hpp"
#include "tensor/tensor_desc.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace maskwise::graph {

enum class layout_kind : std::uint8_t { undef, any, strided, opaque };
enum class property_kind : std::uint8_t { undef, variable, constant, host_scalar };

// An extent that the client has not specified.
inline constexpr std::int64_t unknown_extent = INT64_MIN;

// A value of the graph as the client describes it, at add_op or at compile. Strides are in
// elements, and valid only if layout is strided and the shape is known.
struct logical_tensor {
    std::size_t id = 0;
    data_type type = data_type::undef;
    bool rank_known = false;
    dims extents;
    layout_kind layout = layout_kind::undef;
    dims strides_elems;
    property_kind property = property_kind::undef;
    int host_type = 0;         // if `type` is undef: the host's type number
    std::size_t layout_id = 0; // the host's id of an opaque layout

    // Whether rank and all extents are known. A negative extent other than unknown_extent counts as
    // known, because it is an error.
    bool shape_known() const;
    bool has_type_of(const logical_tensor& other) const {
        return type == other.type && host_type == other.host_type;
    }
    // Whether an output may overwrite this input. Host scalars have no memory, and constants must
    // not change.
    bool may_be_overwritten() const {
        return property != property_kind::host_scalar && property != property_kind::constant;
    }
};

// The strides of a strided tensor of known shape. A dimension of extent 1 gets the largest extent *
// stride of the dimensions after it, as in a dense tensor. No address depends on that stride, but
// libraries derive a layout from it.
dims meant_strides(const logical_tensor& tensor);

// Whether the tensor is known to have one element.
bool is_one_element(const logical_tensor& tensor);

bool same_known_shape(const logical_tensor& a, const logical_tensor& b);

// Whether both tensors have the same layout and shape, and the same offset in elements for each
// index.
bool lie_alike(const logical_tensor& a, const logical_tensor& b);

// The shape for error texts: "{2,?,4}" or "unknown rank".
std::string shape_text(const logical_tensor& tensor);

// The tensor_desc of a strided tensor with known shape. Throws argument_error for another layout,
// an unknown shape, strides that overflow int64 in bytes, and negative strides, which oneDNN does
// not have. Throws shape_error if the tensor spans more bytes than can be addressed.
tensor_desc to_desc(const logical_tensor& tensor);

// Like to_desc, for an input that may be a host scalar without a layout.
tensor_desc to_input_desc(const logical_tensor& input);

} // namespace maskwise::graph
