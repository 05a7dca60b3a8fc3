#pragma once

#include "tensor/data_type.hpp"
#include "tensor/dims.hpp"

#include <cstdint>

namespace maskwise {

// One operand as the client laid it out: extents and byte strides of the same rank, outermost
// first. Strides may be any non-negative number on inputs (0 repeats an element).
struct tensor_desc {
    data_type type = data_type::undef;
    dims extents;
    dims strides_bytes;

    friend bool operator==(const tensor_desc&, const tensor_desc&) = default;
};

// Row-major without gaps. An extent of 0 counts as 1 in the strides, as oneDNN counts it.
// Throws invalid_shape where a byte count leaves int64.
tensor_desc dense_desc(data_type type, const dims& extents);

// Product of the extents: 1 for a scalar, 0 for an empty tensor. Throws invalid_shape on overflow
// or a negative extent.
std::int64_t element_count(const dims& extents);

// Bytes from the first to one past the last byte that the descriptor can touch; 0 where empty.
// Throws invalid_shape on overflow or a negative extent or stride.
std::int64_t span_bytes(const tensor_desc& desc);

} // namespace maskwise
