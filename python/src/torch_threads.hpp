#pragma once

#include <maskwise/maskwise.hpp>

#include <optional>

namespace maskwise::python {

// A loop on torch's own threads: after an operator of torch these wait awake for a while, and
// others would have to share the cores with them. None where no torch of 2.10 or newer is loaded.
std::optional<parallel_loop> torch_loop();

} // namespace maskwise::python
