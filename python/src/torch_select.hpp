// Makes torch.where and masked_fill run Maskwise by replacing torch's CPU kernels.
#pragma once

#include <cstdint>
#include <string_view>

namespace maskwise::python {

// Replaces torch's kernels. Call torch's where and masked_fill first, because torch chooses a
// kernel at its first call. `capability` is torch.backends.cpu.get_cpu_capability(). Returns false,
// without a change, if Maskwise cannot read this torch. Other threads may compute meanwhile.
bool install_torch_selects(std::string_view capability);
// Restores torch's kernels. Has no effect without install_torch_selects().
void uninstall_torch_selects();

// Returns the number of calls that Maskwise has computed.
std::int64_t count_torch_selects();

// Sets the least number of elements for Maskwise. Returns the earlier bound.
std::int64_t bound_torch_selects(std::int64_t least_elements);

} // namespace maskwise::python
