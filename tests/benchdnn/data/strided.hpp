#pragma once

// Between the oracle's dense values and a client's strided buffer.

#include "data/tensor.hpp"

#include <span>

namespace maskwise::bench {

// Elements from the first to one past the last that the view touches.
std::size_t span_elems(const dims& shape, const dims& strides);

// Writes `values` into the view of `strides` (elements) that starts at to[0].
void scatter(const tensor& values, const dims& strides, std::span<std::byte> to);

// Reads the view back as dense values.
tensor gather(data_type type, const dims& shape, const dims& strides,
              std::span<const std::byte> from);

// Number of bytes outside the view that differ from `before`.
std::size_t changed_outside(std::span<const std::byte> now, std::span<const std::byte> before,
                            const dims& shape, const dims& strides, std::size_t width);

} // namespace maskwise::bench
