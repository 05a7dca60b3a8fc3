#pragma once

#include "onednn/library/abi.hpp"

#include <string>

namespace maskwise::onednn {

// Defined by a oneDNN with the Graph API, and by the plugin.
inline constexpr const char* probe_name = "dnnl_graph_graph_create";

// Calls `function(soname)` with libdnnl.so.3, then with Debian's names (libdnnl.so.3.30 down to
// libdnnl.so.3.1), then with libdnnl.so. Returns the first result that is not null.
void* first_by_soname(void* (*function)(const char* soname));

// Returns the path of a loaded oneDNN with the Graph API, whatever its file name is; null if there
// is none. The loader owns the string. Opens no library, because this function also runs at process
// exit: opening a library whose destructors have run would initialize the library again.
const char* find_loaded_onednn() noexcept;

// Returns the path of the loaded object that holds the address, or null. The loader owns the
// string.
const char* file_of(const void* address) noexcept;

// Returns the base address of the loaded object that holds the address, or null.
const void* base_of(const void* address) noexcept;

// For example "3.13.2".
std::string to_string(const abi::version& version);

} // namespace maskwise::onednn
