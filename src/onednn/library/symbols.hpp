#pragma once

#include <cstddef>
#include <link.h>

namespace maskwise::onednn {

// Calls visit(const dl_phdr_info&) for each loaded object until it returns true. The loader holds
// its lock meanwhile: nothing in visit may lock it again or allocate.
template <class Visit>
void visit_loaded(Visit visit) {
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* argument) {
            return (*static_cast<Visit*>(argument))(*object) ? 1 : 0;
        },
        &visit);
}

// The address of the symbol that a loaded object defines under this name, in any version; null if
// it defines none. Reads the object's tables directly: takes no lock, allocates nothing, calls
// nothing.
void* symbol_in(const dl_phdr_info& object, const char* name) noexcept;

// The same for the object that holds this address.
void* symbol_beside(const void* address, const char* name) noexcept;

// The same for the first object in the plugin's namespace whose file has this name, without
// folders. Calls only dladdr1, because a sanitizer's runtime calls dlsym before its strcmp and
// dl_iterate_phdr work.
void* symbol_of_file(const char* file, const char* name) noexcept;

bool is_same(const char* text, const char* other) noexcept;

} // namespace maskwise::onednn
