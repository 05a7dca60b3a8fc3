#include "onednn/library/next_dlsym.hpp"

#include "onednn/library/symbols.hpp"

#include <atomic>
#include <dlfcn.h>

// Read by the jumps of dlsym.cpp, too, after one of the functions below was called.
extern "C" {
__attribute__((visibility("hidden"))) constinit std::atomic<maskwise::onednn::dlsym_function>
    maskwise_next_dlsym{nullptr};
__attribute__((visibility("hidden"))) constinit std::atomic<maskwise::onednn::dlvsym_function>
    maskwise_next_dlvsym{nullptr};
}

namespace maskwise::onednn {
namespace {

// Of another library that wraps the function, or of libc.
void* next_of(const char* name) noexcept {
    const auto libc_dlsym = reinterpret_cast<dlsym_function>(of_libc("dlsym"));
    void* const next = libc_dlsym(RTLD_NEXT, name);
    return next != nullptr ? next : of_libc(name);
}

} // namespace

void* of_libc(const char* name) noexcept {
    void* const address = symbol_of_file("libc.so.6", name);
    return address != nullptr ? address : symbol_of_file("libdl.so.2", name);
}

dlsym_function next_dlsym() noexcept {
    dlsym_function next = maskwise_next_dlsym.load(std::memory_order_acquire);
    if (next != nullptr) return next;
    next = reinterpret_cast<dlsym_function>(next_of("dlsym"));
    maskwise_next_dlsym.store(next, std::memory_order_release);
    return next;
}

dlvsym_function next_dlvsym() noexcept {
    dlvsym_function next = maskwise_next_dlvsym.load(std::memory_order_acquire);
    if (next != nullptr) return next;
    next = reinterpret_cast<dlvsym_function>(next_of("dlvsym"));
    maskwise_next_dlvsym.store(next, std::memory_order_release);
    return next;
}

} // namespace maskwise::onednn
