// Some programs open oneDNN with dlopen and look functions up by handle. If the handle's oneDNN is
// the one that the plugin uses, the plugin's dlsym and dlvsym return Maskwise's functions. Every
// other lookup jumps to the next dlsym. A jump keeps the return address, from which the C library
// finds the caller's position in the search order (RTLD_NEXT).

#include "base/first_use.hpp"
#include "onednn/library/active.hpp"
#include "onednn/library/find_onednn.hpp"
#include "onednn/library/next_dlsym.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/library/symbols.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

#define MASKWISE_HIDDEN __attribute__((visibility("hidden"), used))

extern "C" {
MASKWISE_HIDDEN void* maskwise_dlsym(void* handle, const char* name);
MASKWISE_HIDDEN void* maskwise_dlvsym(void* handle, const char* name, const char* version);
}

namespace maskwise::onednn {
namespace {

bool may_be_exported(const char* name) {
    return std::strncmp(name, "dnnl_graph_", 11) == 0 || std::strcmp(name, "dnnl_set_verbose") == 0;
}

// Another namespace (dlmopen) has its own C library and oneDNN.
bool is_of_base_namespace(void* handle) {
    Lmid_t space = LM_ID_BASE;
    return dlinfo(handle, RTLD_DI_LMID, &space) == 0 && space == LM_ID_BASE;
}

void report_other_copy(const void* address) {
    static std::atomic<bool> is_reported{false};
    if (is_reported.exchange(true)) return;
    std::fprintf(stderr,
                 "maskwise: %s is a second oneDNN of this process, which Maskwise does not change; "
                 "the plugin uses %s\n",
                 file_of(address), real().file);
}

// False if Maskwise is not active, or if another thread's first use takes long (see
// try_to_lock_first_use).
bool may_replace(const void* address) {
    static std::atomic<bool> is_known{false};
    if (is_known.load(std::memory_order_acquire)) return active();
    const auto lock = try_to_lock_first_use();
    if (!lock) {
        std::fprintf(stderr,
                     "maskwise: a lookup in %s is left to oneDNN, because another thread's first "
                     "lookup has not finished\n",
                     file_of(address));
        return false;
    }
    const bool is_active = active();
    is_known.store(true, std::memory_order_release);
    return is_active;
}

// `address` is the result of the next dlsym. Returns Maskwise's function `name` if the address is
// in the oneDNN that the plugin uses, else null.
void* replacement_of(void* handle, const char* name, const void* address) {
    if (address == nullptr || is_this_plugin(address) || !is_of_base_namespace(handle) ||
        !may_replace(address))
        return nullptr;
    const void* const base = base_of(address);
    if (base != base_of(reinterpret_cast<const void*>(real().graph_create))) {
        report_other_copy(address);
        return nullptr;
    }
    return symbol_beside(reinterpret_cast<const void*>(&real), name);
}

// A preloaded wrapper of dlsym may look up the next dlsym by dlvsym with libc's symbol version.
// libc's dlvsym would skip the plugin's functions, which have no symbol version, so the plugin's
// dlvsym returns the plugin's dlsym or dlvsym. Returns null if another library that wraps dlsym
// follows the plugin, because that library may be the caller.
void* plugin_wrapper(const void* handle, const char* name) {
    if (handle != RTLD_NEXT || name == nullptr) return nullptr;
    const bool is_dlsym = is_same(name, "dlsym");
    if (!is_dlsym && !is_same(name, "dlvsym")) return nullptr;
    if (reinterpret_cast<void*>(next_dlsym()) != of_libc("dlsym")) return nullptr;
    return is_dlsym ? reinterpret_cast<void*>(&maskwise_dlsym)
                    : reinterpret_cast<void*>(&maskwise_dlvsym);
}

bool is_by_handle(const void* handle, const char* name) {
    return handle != RTLD_DEFAULT && handle != RTLD_NEXT && name != nullptr &&
           may_be_exported(name);
}

} // namespace
} // namespace maskwise::onednn

// The assembly below calls these two functions. If one returns null, the assembly jumps to the next
// dlsym or dlvsym.
extern "C" MASKWISE_HIDDEN void* maskwise_replacement(void* handle, const char* name) noexcept {
    using namespace maskwise::onednn;
    const dlsym_function next = next_dlsym();
    if (!is_by_handle(handle, name)) return nullptr;
    return replacement_of(handle, name, next(handle, name));
}

extern "C" MASKWISE_HIDDEN void* maskwise_versioned_replacement(void* handle, const char* name,
                                                                const char* version) noexcept {
    using namespace maskwise::onednn;
    const dlvsym_function next = next_dlvsym();
    if (void* const wrapper = plugin_wrapper(handle, name)) return wrapper;
    if (!is_by_handle(handle, name)) return nullptr;
    return replacement_of(handle, name, next(handle, name, version));
}

// Calls `replacement` and returns its result if not null. Else restores the arguments and the
// stack, and jumps to `next`.
#ifdef __aarch64__
#define MASKWISE_REPLACE_OR_JUMP(replacement, next)                                                \
    "stp x29, x30, [sp, #-48]!\n"                                                                  \
    ".cfi_def_cfa_offset 48\n"                                                                     \
    ".cfi_offset 29, -48\n"                                                                        \
    ".cfi_offset 30, -40\n"                                                                        \
    "mov x29, sp\n"                                                                                \
    "stp x0, x1, [sp, #16]\n"                                                                      \
    "str x2, [sp, #32]\n"                                                                          \
    "bl " replacement "\n"                                                                         \
    "mov x16, x0\n"                                                                                \
    "ldp x0, x1, [sp, #16]\n"                                                                      \
    "ldr x2, [sp, #32]\n"                                                                          \
    "ldp x29, x30, [sp], #48\n"                                                                    \
    ".cfi_restore 29\n"                                                                            \
    ".cfi_restore 30\n"                                                                            \
    ".cfi_def_cfa_offset 0\n"                                                                      \
    "cbnz x16, 1f\n"                                                                               \
    "adrp x16, " next "\n"                                                                         \
    "ldr x16, [x16, #:lo12:" next "]\n"                                                            \
    "br x16\n"                                                                                     \
    "1: mov x0, x16\n"                                                                             \
    "ret\n"
#else
#define MASKWISE_REPLACE_OR_JUMP(replacement, next)                                                \
    "push %rdi\n"                                                                                  \
    ".cfi_adjust_cfa_offset 8\n"                                                                   \
    "push %rsi\n"                                                                                  \
    ".cfi_adjust_cfa_offset 8\n"                                                                   \
    "push %rdx\n"                                                                                  \
    ".cfi_adjust_cfa_offset 8\n"                                                                   \
    "call " replacement "\n"                                                                       \
    "pop %rdx\n"                                                                                   \
    ".cfi_adjust_cfa_offset -8\n"                                                                  \
    "pop %rsi\n"                                                                                   \
    ".cfi_adjust_cfa_offset -8\n"                                                                  \
    "pop %rdi\n"                                                                                   \
    ".cfi_adjust_cfa_offset -8\n"                                                                  \
    "test %rax, %rax\n"                                                                            \
    "jnz 1f\n"                                                                                     \
    "jmp *" next "(%rip)\n"                                                                        \
    "1: ret\n"
#endif
#define MASKWISE_DEFINE(name, replacement, next)                                                   \
    __asm__(".text\n"                                                                              \
            ".globl " name "\n.hidden maskwise_" name "\n.globl maskwise_" name "\n"               \
            ".type " name ", %function\n" name ":\nmaskwise_" name ":\n"                           \
            ".cfi_startproc\n" MASKWISE_REPLACE_OR_JUMP(replacement, next) ".cfi_endproc\n"        \
                                                                           ".size " name           \
                                                                           ", .-" name "\n")

MASKWISE_DEFINE("dlsym", "maskwise_replacement", "maskwise_next_dlsym");
MASKWISE_DEFINE("dlvsym", "maskwise_versioned_replacement", "maskwise_next_dlvsym");
