#pragma once

#include "maskwise/maskwise.hpp"
#include "tensor/tensor_desc.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace maskwise::graph {

enum class layout_kind : std::uint8_t { undef, any, strided, opaque };
enum class property_kind : std::uint8_t { undef, variable, constant, host_scalar };

// An extent that the client left open.
inline constexpr std::int64_t unknown_extent = INT64_MIN;

// A value of the graph as the client describes it, at add_op or at compile. Strides are in elements
// and meaningful if layout is strided and the shape is known.
struct logical_tensor {
    std::size_t id = 0;
    data_type type = data_type::undef;
    bool rank_known = false;
    dims extents;
    layout_kind layout = layout_kind::undef;
    dims strides_elems;
    property_kind property = property_kind::undef;
    int host_type = 0;         // if `type` is undef: the host's number of the type
    std::size_t layout_id = 0; // the host's number of an opaque layout

    // Rank and every extent known. A negative extent that is not the marker counts as known: it is
    // wrong, not open.
    bool shape_known() const;
    bool has_type_of(const logical_tensor& other) const {
        return type == other.type && host_type == other.host_type;
    }
    // Whether an output may share this input's memory. Host scalars have none, and constants stay.
    bool may_be_overwritten() const {
        return property != property_kind::host_scalar && property != property_kind::constant;
    }
};

// The strides of a strided tensor of known shape. An extent of 1 gets the stride that it would have
// in a dense tensor: no address depends on it, but libraries read a layout from it.
dims meant_strides(const logical_tensor& tensor);

// Whether the tensor is known to have one element.
bool is_one_element(const logical_tensor& tensor);

bool same_known_shape(const logical_tensor& a, const logical_tensor& b);

// Whether both have the same shape and every index the same offset in elements.
bool lie_alike(const logical_tensor& a, const logical_tensor& b);

// For reasons: "{2,?,4}" or "unknown rank".
std::string shape_text(const logical_tensor& tensor);

// The engine's description of a strided tensor with known shape. Throws argument_error for another
// layout, an open shape, strides that leave int64 in bytes, and negative strides, which oneDNN does
// not have. Throws shape_error if the tensor spans more than can be addressed.
tensor_desc to_desc(const logical_tensor& tensor);

// The same for an input, which may be a host scalar without a layout.
tensor_desc to_input_desc(const logical_tensor& input);

} // namespace maskwise::graph
