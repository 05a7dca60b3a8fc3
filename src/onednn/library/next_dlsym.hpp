#pragma once

namespace maskwise::onednn {

using dlsym_function = void* (*)(void* handle, const char* name);
using dlvsym_function = void* (*)(void* handle, const char* name, const char* version);

// The dlsym and dlvsym after the plugin's in the search order: those of another library that wraps
// them, or the C library's. Any thread, even before constructors have run. Allocates nothing.
dlsym_function next_dlsym() noexcept;
dlvsym_function next_dlvsym() noexcept;

// The C library's function; libdl's before glibc 2.34.
void* of_libc(const char* name) noexcept;

// dlsym for the plugin itself; its exported dlsym would find the plugin again. RTLD_NEXT starts
// after the plugin: the call is inlined, so its return address is in the plugin.
[[gnu::always_inline]] inline void* find_symbol(void* handle, const char* name) {
    return next_dlsym()(handle, name);
}

} // namespace maskwise::onednn
