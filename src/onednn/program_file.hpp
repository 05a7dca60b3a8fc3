#pragma once

#include <string>

namespace maskwise::onednn {

// The loader of this process, by the path in its own PT_INTERP.
std::string own_loader();

// Throws argument_error unless that loader can list the libraries of the file without running any
// of its code: a dynamically linked program for this machine and this loader, complete, without
// privileges and audit libraries. Reads the file only.
void check_program(const std::string& path);

} // namespace maskwise::onednn
