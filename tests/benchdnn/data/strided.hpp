#pragma once

// Copies between the oracle's dense values and the client's strided buffers.

#include "data/tensor.hpp"

#include <span>

namespace maskwise::bench {

// Number of elements from the first to the last that the view touches.
std::size_t span_elems(const dims& shape, const dims& strides);

// Writes `values` to the view with `strides` that starts at to[0].
void scatter(const tensor& values, const dims& strides, std::span<std::byte> to);

// Reads the view that starts at from[0] as a dense tensor.
tensor gather(data_type type, const dims& shape, const dims& strides,
              std::span<const std::byte> from);

// Number of bytes outside the view's elements that differ from `before`.
std::size_t changed_outside(std::span<const std::byte> now, std::span<const std::byte> before,
                            const dims& shape, const dims& strides, std::size_t width);

} // namespace maskwise::bench
