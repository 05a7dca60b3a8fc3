#pragma once

#include <maskwise/maskwise.hpp>

#include <optional>

namespace maskwise::python {

// A loop on torch's threads. Other threads would compete for the cores with torch's threads, which
// spin after each operator of torch. None if no torch 2.10 or newer is loaded.
std::optional<parallel_loop> torch_loop();

} // namespace maskwise::python
