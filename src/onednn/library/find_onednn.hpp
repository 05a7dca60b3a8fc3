#pragma once

#include "onednn/library/abi.hpp"

#include <string>

namespace maskwise::onednn {

// A library that defines this function is a oneDNN with the Graph API, or the plugin.
inline constexpr const char* probe_name = "dnnl_graph_graph_create";

// Calls `function(soname)` with libdnnl.so.3, then with Debian's names (libdnnl.so.3.30 down to
// libdnnl.so.3.1), then with libdnnl.so. Returns the first result that is not null.
void* first_by_soname(void* (*function)(const char* soname));

// The file of a loaded oneDNN with the Graph API, under any name; null if there is none. The loader
// owns the text. Opens no library, so this function may run while the process ends. Opening a
// library whose destructors have run would initialize the library again.
const char* find_loaded_onednn() noexcept;

// The file of the loaded object that holds the address, or null. The loader owns the text.
const char* file_of(const void* address) noexcept;

// The lowest address of the loaded object that holds the address, or null.
const void* base_of(const void* address) noexcept;

// For example "3.13.2".
std::string to_string(const abi::version& version);

} // namespace maskwise::onednn
