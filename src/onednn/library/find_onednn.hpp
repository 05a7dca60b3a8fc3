#pragma once

#include "onednn/library/abi.hpp"

#include <string>

namespace maskwise::onednn {

// Any function that every oneDNN with the Graph API has; tells such a library.
inline constexpr const char* probe_name = "dnnl_graph_graph_create";

// The first answer of `function(soname)` that is not null: oneDNN's own name first, then Debian's,
// which end in the minor version.
void* first_by_soname(void* (*function)(const char* soname));

// The file of a oneDNN with the Graph API that the process has loaded, by any way and under any
// name; null where there is none. The text is the loader's. Opens nothing, so that it may run when
// the process ends: a library that has ended begins again where one opens it.
const char* find_loaded_onednn() noexcept;

// The file of the loaded object that holds the address; null where none does. The loader's text.
const char* file_of(const void* address) noexcept;

// "3.13.2"
std::string to_string(const abi::version& version);

} // namespace maskwise::onednn
