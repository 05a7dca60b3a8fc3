// torch.where and masked_fill on CPUs by Maskwise. Replaces the kernels that torch chose for the
// CPU.
#pragma once

#include <cstdint>
#include <string_view>

namespace maskwise::python {

// Calls each of torch's kernels once, then replaces it. `capability` is
// torch.backends.cpu.get_cpu_capability(). Returns false, without a change, if it cannot read this
// torch. Other threads may compute meanwhile.
bool install_torch_selects(std::string_view capability);
// Restores torch's kernels. Without install_torch_selects() it does nothing.
void uninstall_torch_selects();

// The number of calls that Maskwise has computed.
std::int64_t count_torch_selects();

// Sets the least number of elements for Maskwise. Returns the earlier bound.
std::int64_t bound_torch_selects(std::int64_t least_elements);

} // namespace maskwise::python
