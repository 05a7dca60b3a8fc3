// Functions that the loaded torch exports.
#pragma once

#include <dlfcn.h>

namespace maskwise::python {

// Null if no torch is loaded.
inline void* torch_library() {
    return dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_NOW);
}

// Sets `pointer` to null if the library does not export `name`.
template <class Pointer>
void find_symbol(void* library, const char* name, Pointer& pointer) {
    pointer = reinterpret_cast<Pointer>(dlsym(library, name));
}

} // namespace maskwise::python
