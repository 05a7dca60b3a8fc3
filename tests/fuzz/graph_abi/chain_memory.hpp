#pragma once

#include "description.hpp"

#include <cstddef>
#include <vector>

namespace maskwise::fuzz {

// A tensor with its memory.
struct laid_out {
    const logical_tensor& tensor;
    const std::vector<std::byte>& bytes;
};

using indices = std::vector<std::int64_t>; // strides in elements, outermost dimension first

// To the next element; false after the last.
bool step(indices& index, const logical_tensor& tensor);

double load(const laid_out& from, const indices& index);

// Rounds to `type`; a finite number stays finite.
void store(std::byte* to, dnnl_data_type_t type, float value);

} // namespace maskwise::fuzz
