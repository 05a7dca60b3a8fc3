#pragma once

#include <cstddef>
#include <link.h>

namespace maskwise::onednn {

// Calls visit(const dl_phdr_info&) for each loaded object until `visit` returns true. `visit` must
// not allocate or take the loader's lock, which is held during the call.
template <class Visit>
void visit_loaded(Visit visit) {
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* argument) {
            return (*static_cast<Visit*>(argument))(*object) ? 1 : 0;
        },
        &visit);
}

// Returns the address of the object's symbol `name`, in any version, or null. Reads the object's
// tables directly, without locks, allocations or calls of other libraries.
void* symbol_in(const dl_phdr_info& object, const char* name) noexcept;

// Does the same for the object that holds the address, found by dladdr1.
void* symbol_beside(const void* address, const char* name) noexcept;

// Does the same for the first object in the plugin's namespace whose file name, without folders, is
// `file`. Calls only dladdr1 of other libraries: a sanitizer's runtime calls dlsym before its
// strcmp and dl_iterate_phdr work.
void* symbol_of_file(const char* file, const char* name) noexcept;

bool is_same(const char* text, const char* other) noexcept;

} // namespace maskwise::onednn
