#pragma once

#include <maskwise/maskwise.hpp>

#include <optional>

namespace maskwise::python {

// A loop on torch's threads. They spin for a while after an operator of torch, and other threads
// would compete with them for the cores. None if no torch 2.10 or newer is loaded.
std::optional<parallel_loop> torch_loop();

} // namespace maskwise::python
