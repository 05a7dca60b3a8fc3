#pragma once

#include "kernel/kernel_table.hpp"

#include <vector>

namespace maskwise::test {

// The tables of this machine's instruction sets, lowest first, with products of bf16 by tiles in
// C++: `target` is amx, `base` the instruction set. So any machine tests the code that AMX's
// kernels share.
const std::vector<kernel_table>& emulated_tables();

} // namespace maskwise::test
