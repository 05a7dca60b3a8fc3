// The plugin calls oneTBB but does not link it. This file defines the functions of libtbb that
// exec/parallel_tbb.cpp calls, and forwards each function to the process's libtbb. If a function is
// missing here, linking the plugin fails.

#include "base/first_use.hpp"
#include "base/verbose.hpp"
#include "exec/tbb_library.hpp"
#include "onednn/library/find_onednn.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <optional>

// The mangled names, without the prefix "_ZN3tbb6detail2r1".
#define TBB_FUNCTIONS(F)                                                                           \
    F(8allocateERPNS0_2d117small_object_poolEm)                                                    \
    F(8allocateERPNS0_2d117small_object_poolEmRKNS2_14execution_dataE)                             \
    F(10deallocateERNS0_2d117small_object_poolEPvmRKNS2_14execution_dataE)                         \
    F(10initializeERNS0_2d118task_group_contextE)                                                  \
    F(7destroyERNS0_2d118task_group_contextE)                                                      \
    F(5spawnERNS0_2d14taskERNS2_18task_group_contextE)                                             \
    F(16execute_and_waitERNS0_2d14taskERNS2_18task_group_contextERNS2_12wait_contextES6_)          \
    F(14notify_waitersEm)                                                                          \
    F(14execution_slotEPKNS0_2d114execution_dataE)                                                 \
    F(15max_concurrencyEPKNS0_2d115task_arena_baseE)                                               \
    F(20isolate_within_arenaERNS0_2d113delegate_baseEl)                                            \
    F(27global_control_active_valueEi)

namespace {

// Each function has at most four parameters and one result, all pointers or integers. In every
// supported ABI, each parameter has its own register, so one signature forwards all functions.
using word = std::uintptr_t;
using tbb_function = word(word, word, word, word);

struct {
#define F(name) tbb_function* _ZN3tbb6detail2r1##name;
    TBB_FUNCTIONS(F)
#undef F
} libtbb;

// Looks up every function. Returns the name of the first function that `handle` lacks, or null.
const char* resolve_all(void* handle) {
#define F(name)                                                                                    \
    libtbb._ZN3tbb6detail2r1##name =                                                               \
        reinterpret_cast<tbb_function*>(dlsym(handle, "_ZN3tbb6detail2r1" #name));                 \
    if (libtbb._ZN3tbb6detail2r1##name == nullptr) return "_ZN3tbb6detail2r1" #name;
    TBB_FUNCTIONS(F)
#undef F
    return nullptr;
}

} // namespace

extern "C" {
#define F(name)                                                                                    \
    word _ZN3tbb6detail2r1##name(word first, word second, word third, word fourth) {               \
        return libtbb._ZN3tbb6detail2r1##name(first, second, third, fourth);                       \
    }
TBB_FUNCTIONS(F)
#undef F
}

namespace maskwise {
namespace {

constexpr const char* soname = "libtbb.so.12";
constexpr const char* probe_name = "TBB_runtime_interface_version";

std::atomic<bool> is_resolved = false;

// nullopt if no libtbb is loaded. Not a plain pointer, because RTLD_DEFAULT is null.
std::optional<void*> find_loaded() {
    if (dlsym(RTLD_DEFAULT, probe_name) != nullptr) return RTLD_DEFAULT;
    if (void* const handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD)) return handle;
    return std::nullopt;
}

bool resolve_from(void* handle, const char* how) noexcept {
    const char* const known = onednn::file_of(dlsym(handle, probe_name));
    const char* const file = known != nullptr ? known : soname;
    if (const char* missing = resolve_all(handle)) {
        std::fprintf(stderr, "maskwise: %s lacks %s: the calling thread works alone\n", file,
                     missing);
        return false;
    }
    if (verbose_level() >= 1) std::fprintf(stderr, "maskwise,threads,libtbb %s (%s)\n", file, how);
    return is_resolved = true;
}

// Called once per process, because opening a missing library is slow.
bool resolve_or_open() noexcept {
    if (is_resolved) return true;
    if (const auto loaded = find_loaded()) return resolve_from(*loaded, "already loaded");
    if (void* const handle = dlopen(soname, RTLD_LAZY)) return resolve_from(handle, "opened");
    std::fprintf(stderr, "maskwise: no oneTBB, the calling thread works alone: %s\n", dlerror());
    return false;
}

} // namespace

bool has_tbb(tbb_search where) noexcept {
    if (is_resolved.load(std::memory_order_acquire)) return true;
    if (where == tbb_search::open_too) return at_first_use<resolve_or_open>();
    const auto lock = lock_first_use();
    if (is_resolved) return true;
    const auto loaded = find_loaded();
    return loaded && resolve_from(*loaded, "already loaded");
}

} // namespace maskwise
