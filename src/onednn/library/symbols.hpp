#pragma once

#include <link.h>

namespace maskwise::onednn {

// The address of the symbol that a loaded object defines under this name, whatever its version;
// null if it defines none. Reads the object's own tables: takes no lock and allocates nothing.
void* symbol_in(const dl_phdr_info& object, const char* name) noexcept;

// The same for the object that is loaded from `base`, its lowest address.
void* symbol_at(const void* base, const char* name) noexcept;

// The same for the first loaded object whose file has this name, without folders.
void* symbol_of_file(const char* file, const char* name) noexcept;

} // namespace maskwise::onednn
