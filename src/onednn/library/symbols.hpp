#pragma once

#include <cstddef>
#include <link.h>

namespace maskwise::onednn {

// Calls visit(const dl_phdr_info&) for each loaded object until `visit` returns true. The loader
// holds its lock during the call, so `visit` must not take this lock or allocate.
template <class Visit>
void visit_loaded(Visit visit) {
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* argument) {
            return (*static_cast<Visit*>(argument))(*object) ? 1 : 0;
        },
        &visit);
}

// The address of a loaded object's symbol with this name, in any version; null if there is none.
// Reads the object's tables directly, without locks, allocations or calls of other libraries.
void* symbol_in(const dl_phdr_info& object, const char* name) noexcept;

// Does the same for the object that holds this address, which dladdr1 finds.
void* symbol_beside(const void* address, const char* name) noexcept;

// Does the same for the first object in the plugin's namespace whose file name, without folders, is
// `file`. Calls no function of other libraries except dladdr1, because a sanitizer's runtime calls
// dlsym before its strcmp and dl_iterate_phdr work.
void* symbol_of_file(const char* file, const char* name) noexcept;

bool is_same(const char* text, const char* other) noexcept;

} // namespace maskwise::onednn
