#include "onednn/library/next_dlsym.hpp"

#include "onednn/library/symbols.hpp"

#include <atomic>
#include <dlfcn.h>

// The assembly in dlsym.cpp jumps to these addresses, after a function below has set them.
extern "C" {
__attribute__((visibility("hidden"))) constinit std::atomic<maskwise::onednn::dlsym_function>
    maskwise_next_dlsym{nullptr};
__attribute__((visibility("hidden"))) constinit std::atomic<maskwise::onednn::dlvsym_function>
    maskwise_next_dlvsym{nullptr};
}

namespace maskwise::onednn {
namespace {

// The next wrapper of the function in the search order, or libc's function.
void* next_of(const char* name) noexcept {
    const auto libc_dlsym = reinterpret_cast<dlsym_function>(of_libc("dlsym"));
    void* const next = libc_dlsym(RTLD_NEXT, name);
    return next != nullptr ? next : of_libc(name);
}

template <class Function>
Function cached(std::atomic<Function>& cache, const char* name) noexcept {
    Function next = cache.load(std::memory_order_acquire);
    if (next != nullptr) return next;
    next = reinterpret_cast<Function>(next_of(name));
    cache.store(next, std::memory_order_release);
    return next;
}

} // namespace

void* of_libc(const char* name) noexcept {
    void* const address = symbol_of_file("libc.so.6", name);
    return address != nullptr ? address : symbol_of_file("libdl.so.2", name);
}

dlsym_function next_dlsym() noexcept {
    return cached(maskwise_next_dlsym, "dlsym");
}

dlvsym_function next_dlvsym() noexcept {
    return cached(maskwise_next_dlvsym, "dlvsym");
}

} // namespace maskwise::onednn
