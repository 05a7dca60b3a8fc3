#pragma once

#include "kernel/kernel_table.hpp"

#include <vector>

namespace maskwise::test {

// One table for each instruction set of this machine that has separate kernels, lowest first. The
// bf16 products of each table use emulated AMX tiles: `target` is amx. `base` is the instruction
// set that runs. So every machine tests the code that these tables share with the AMX kernels.
const std::vector<kernel_table>& emulated_tables();

} // namespace maskwise::test
