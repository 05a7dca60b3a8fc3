// The plugin calls oneTBB, but does not need it to load: this file defines the functions of libtbb
// that exec/parallel_tbb.cpp calls, and passes each on to the library that the process has. The
// linker checks the list: it refuses a plugin with a function of oneTBB's left undefined.

#include "base/first_use.hpp"
#include "base/verbose.hpp"
#include "exec/tbb_library.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <optional>

namespace tbb::detail::d1 {
class task;
class task_group_context;
class wait_context;
class small_object_pool;
class task_arena_base;
class delegate_base;
struct execution_data;
} // namespace tbb::detail::d1

// F(slot, result, name, mangled name behind "_ZN3tbb6detail2r1", parameters, arguments)
#define TBB_FUNCTIONS(F)                                                                           \
    F(allocate, void*, allocate, "8allocateERPNS0_2d117small_object_poolEm",                       \
      (d1::small_object_pool * &pool, std::size_t bytes), (pool, bytes))                           \
    F(allocate_in_task, void*, allocate,                                                           \
      "8allocateERPNS0_2d117small_object_poolEmRKNS2_14execution_dataE",                           \
      (d1::small_object_pool * &pool, std::size_t bytes, const d1::execution_data& data),          \
      (pool, bytes, data))                                                                         \
    F(deallocate, void, deallocate,                                                                \
      "10deallocateERNS0_2d117small_object_poolEPvmRKNS2_14execution_dataE",                       \
      (d1::small_object_pool & pool, void* at, std::size_t bytes, const d1::execution_data& data), \
      (pool, at, bytes, data))                                                                     \
    F(initialize, void, initialize, "10initializeERNS0_2d118task_group_contextE",                  \
      (d1::task_group_context & context), (context))                                               \
    F(destroy, void, destroy, "7destroyERNS0_2d118task_group_contextE",                            \
      (d1::task_group_context & context), (context))                                               \
    F(spawn, void, spawn, "5spawnERNS0_2d14taskERNS2_18task_group_contextE",                       \
      (d1::task & task, d1::task_group_context & context), (task, context))                        \
    F(execute_and_wait, void, execute_and_wait,                                                    \
      "16execute_and_waitERNS0_2d14taskERNS2_18task_group_contextERNS2_12wait_contextES6_",        \
      (d1::task & task, d1::task_group_context & of_task, d1::wait_context & wait,                 \
       d1::task_group_context & of_wait),                                                          \
      (task, of_task, wait, of_wait))                                                              \
    F(notify_waiters, void, notify_waiters, "14notify_waitersEm", (std::uintptr_t wait), (wait))   \
    F(execution_slot, std::uint16_t, execution_slot,                                               \
      "14execution_slotEPKNS0_2d114execution_dataE", (const d1::execution_data* data), (data))     \
    F(max_concurrency, int, max_concurrency, "15max_concurrencyEPKNS0_2d115task_arena_baseE",      \
      (const d1::task_arena_base* arena), (arena))                                                 \
    F(isolate_within_arena, void, isolate_within_arena,                                            \
      "20isolate_within_arenaERNS0_2d113delegate_baseEl",                                          \
      (d1::delegate_base & body, std::intptr_t isolation), (body, isolation))                      \
    F(active_value, std::size_t, global_control_active_value, "27global_control_active_valueEi",   \
      (int parameter), (parameter))

namespace tbb::detail::r1 {
namespace {

struct {
#define F(slot, result, name, symbol, parameters, arguments) result(*slot) parameters;
    TBB_FUNCTIONS(F)
#undef F
} library;

} // namespace

#define F(slot, result, name, symbol, parameters, arguments)                                       \
    result name parameters {                                                                       \
        return library.slot arguments;                                                             \
    }
TBB_FUNCTIONS(F)
#undef F

namespace {

// The name of the first function that `handle` lacks; null where it has all.
const char* resolve(void* handle) {
#define F(slot, result, name, symbol, parameters, arguments)                                       \
    library.slot =                                                                                 \
        reinterpret_cast<decltype(library.slot)>(dlsym(handle, "_ZN3tbb6detail2r1" symbol));       \
    if (library.slot == nullptr) return #name;
    TBB_FUNCTIONS(F)
#undef F
    return nullptr;
}

} // namespace
} // namespace tbb::detail::r1

namespace maskwise {
namespace {

constexpr const char* soname = "libtbb.so.12";
constexpr const char* probe_name = "TBB_runtime_interface_version";

std::atomic<bool> is_found = false;

// RTLD_DEFAULT is a null pointer, so none has to be said otherwise.
std::optional<void*> find_loaded() {
    if (dlsym(RTLD_DEFAULT, probe_name) != nullptr) return RTLD_DEFAULT;
    if (void* const handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD)) return handle;
    return std::nullopt;
}

bool take(void* handle, const char* how) noexcept {
    Dl_info info{};
    const bool has_name = dladdr(dlsym(handle, probe_name), &info) != 0;
    const char* const file = has_name ? info.dli_fname : soname;
    if (const char* missing = tbb::detail::r1::resolve(handle)) {
        std::fprintf(stderr, "maskwise: %s is without %s: the calling thread works alone\n", file,
                     missing);
        return false;
    }
    if (verbose_level() >= 1) std::fprintf(stderr, "maskwise,threads,libtbb %s (%s)\n", file, how);
    return is_found = true;
}

// Once a process: opening a library that is not there takes 100 microseconds.
bool take_any() noexcept {
    if (is_found) return true;
    if (const auto loaded = find_loaded()) return take(*loaded, "already loaded");
    if (void* const handle = dlopen(soname, RTLD_LAZY)) return take(handle, "opened");
    std::fprintf(stderr, "maskwise: no oneTBB, the calling thread works alone: %s\n", dlerror());
    return false;
}

} // namespace

bool has_tbb(tbb_search where) noexcept {
    if (is_found.load(std::memory_order_acquire)) return true;
    if (where == tbb_search::open_too) return at_first_use<take_any>();
    const auto lock = lock_first_use();
    if (is_found) return true;
    const auto loaded = find_loaded();
    return loaded && take(*loaded, "already loaded");
}

} // namespace maskwise
