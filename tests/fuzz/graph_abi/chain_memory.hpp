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

using indices = std::vector<std::int64_t>; // one per dimension, outermost first

// Advances to the next element. Returns false after the last element.
bool step(indices& index, const logical_tensor& tensor);

double load(const laid_out& from, const indices& index);

// Rounds to `type`. In f16, a finite number stays finite.
void store(std::byte* to, dnnl_data_type_t type, float value);

} // namespace maskwise::fuzz
