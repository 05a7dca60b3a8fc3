// Reads a c10::Scalar, a number in torch.
#pragma once

#include <maskwise/maskwise.hpp>

#include <array>
#include <cstddef>
#include <optional>

namespace maskwise::python {

struct torch_scalar; // c10::Scalar

using torch_element = std::array<std::byte, 16>; // an element of any type, padded with 0

// The element to which torch would convert the number. None if torch might refuse the number or
// round it differently.
std::optional<torch_element> element_of(const torch_scalar& number, data_type type);

} // namespace maskwise::python
