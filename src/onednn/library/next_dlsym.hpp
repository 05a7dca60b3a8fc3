#pragma once

namespace maskwise::onednn {

using dlsym_function = void* (*)(void* handle, const char* name);
using dlvsym_function = void* (*)(void* handle, const char* name, const char* version);

// What follows the plugin's own dlsym and dlvsym in the search order: another library that wraps
// them, or the C library. Any thread, before constructors have run, too; allocates nothing.
dlsym_function next_dlsym() noexcept;
dlvsym_function next_dlvsym() noexcept;

// libc's own, of libdl before glibc 2.34.
void* of_libc(const char* name) noexcept;

// dlsym for the plugin itself, which its own dlsym would lead back to it. RTLD_NEXT is what follows
// the plugin: the call is inlined, so its return address is in the plugin.
[[gnu::always_inline]] inline void* find_symbol(void* handle, const char* name) {
    return next_dlsym()(handle, name);
}

} // namespace maskwise::onednn
