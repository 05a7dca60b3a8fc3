#pragma once

#include "kernel/kernel_table.hpp"
#include "tensor/tensor_desc.hpp"

#include <cstddef>

namespace maskwise::fusion {

// Sums over the heads of each group, in f32. `heads` is dense {outer..., group, keys, columns}.
// `sums` is {outer..., 1, keys, columns} with any strides. Both are f32, bf16 or f16. Runs on
// oneTBB's threads.
void sum_heads(const attention_kernels& kernels, const tensor_desc& heads, const std::byte* src,
               const tensor_desc& sums, std::byte* dst);

} // namespace maskwise::fusion
