#pragma once

#include "onednn/library/real_library.hpp"

namespace maskwise::onednn {

// The verbose line of a process in which oneDNN was found: which it is, what else Maskwise uses,
// and why Maskwise is inactive, or null.
void print_load_line(const real_library& library, const char* why_inactive) noexcept;

} // namespace maskwise::onednn
