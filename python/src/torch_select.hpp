// torch.where and masked_fill on CPUs by Maskwise, as one more of the kernels that torch has for
// the instruction sets of CPUs.
#pragma once

#include <cstdint>
#include <string_view>

namespace maskwise::python {

// Exchanges torch's kernels, after a call of each. `capability` is
// torch.backends.cpu.get_cpu_capability(). False, and nothing is changed, if this torch cannot be
// read. Other threads may compute meanwhile.
bool install_torch_selects(std::string_view capability);
// Torch's kernels again; without install_torch_selects() nothing.
void uninstall_torch_selects();

// How many calls Maskwise has computed.
std::int64_t count_torch_selects();

// Calls of fewer elements are torch's. Returns the bound that was before.
std::int64_t bound_torch_selects(std::int64_t least_elements);

} // namespace maskwise::python
