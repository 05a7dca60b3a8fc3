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
// and meaningful where layout is strided and the shape is known.
struct logical_tensor {
    std::size_t id = 0;
    data_type type = data_type::undef;
    bool rank_known = false;
    dims extents;
    layout_kind layout = layout_kind::undef;
    dims strides_elems;
    property_kind property = property_kind::undef;

    // Rank and every extent known. A negative extent that is not the marker counts as known: it is
    // wrong, not open.
    bool shape_known() const;
    // Whether an output may lie where this input lies: host scalars have no place, constants stay.
    bool may_be_overwritten() const {
        return property != property_kind::host_scalar && property != property_kind::constant;
    }
};

// The strides of a strided tensor of known shape, those of extents of 1 as if its own dimensions
// inside lay without gaps. No address depends on them, but libraries read a layout from them.
dims meant_strides(const logical_tensor& tensor);

// Whether the tensor is known to have one element.
bool is_one_element(const logical_tensor& tensor);

bool same_known_shape(const logical_tensor& a, const logical_tensor& b);

// Whether the same index is at the same place of both; types apart.
bool lie_alike(const logical_tensor& a, const logical_tensor& b);

// For reasons: "{2,?,4}" or "unknown rank".
std::string shape_text(const logical_tensor& tensor);

// The engine's description of a strided tensor with known shape. Throws argument_error where the
// layout is another or the shape open, and where strides leave int64 in bytes or are negative,
// which oneDNN does not have; shape_error where the tensor spans more than can be addressed.
tensor_desc to_desc(const logical_tensor& tensor);

// The same of an input that may be a host scalar, which has no layout.
tensor_desc to_input_desc(const logical_tensor& input);

} // namespace maskwise::graph
