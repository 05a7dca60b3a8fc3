#pragma once

#include "onednn/library/abi.hpp"

#include <string>

namespace maskwise::onednn {

// A library that defines this function is a oneDNN with the Graph API, or the plugin.
inline constexpr const char* probe_name = "dnnl_graph_graph_create";

// Calls `function(soname)` with oneDNN's own name, then with Debian's names, which end in the minor
// version. Returns the first answer that is not null.
void* first_by_soname(void* (*function)(const char* soname));

// The file of a oneDNN with the Graph API that the process has loaded, in any way and under any
// name; null if there is none. The loader owns the text. Opens nothing, so it may run when the
// process ends: opening a library whose destructors have run would start it again.
const char* find_loaded_onednn() noexcept;

// The file of the loaded object that holds the address, or null. The loader owns the text.
const char* file_of(const void* address) noexcept;

// The lowest address of the loaded object that holds this one; null if there is none.
const void* base_of(const void* address) noexcept;

// "3.13.2"
std::string to_string(const abi::version& version);

} // namespace maskwise::onednn
