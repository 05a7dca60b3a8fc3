#pragma once

namespace maskwise::onednn {

using dlsym_function = void* (*)(void* handle, const char* name);
using dlvsym_function = void* (*)(void* handle, const char* name, const char* version);

// Return the dlsym and dlvsym after the plugin's in the search order: another library's wrapper, or
// the C library's function. Any thread may call these functions, even before constructors have run.
// The functions allocate nothing.
dlsym_function next_dlsym() noexcept;
dlvsym_function next_dlvsym() noexcept;

// Returns the C library's function; before glibc 2.34, libdl's.
void* of_libc(const char* name) noexcept;

// dlsym for the plugin's code; the exported dlsym would call the plugin again. Inlined, so that the
// return address is in the plugin and RTLD_NEXT starts after the plugin.
[[gnu::always_inline]] inline void* find_symbol(void* handle, const char* name) {
    return next_dlsym()(handle, name);
}

} // namespace maskwise::onednn
