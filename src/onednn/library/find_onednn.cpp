#include "onednn/library/find_onednn.hpp"

#include "onednn/library/symbols.hpp"

#include <cstdio>
#include <dlfcn.h>
#include <link.h>

namespace maskwise::onednn {
namespace {

struct onednn_search {
    ElfW(Addr) own_base;
    const char* file = nullptr;
};

// The loader is locked meanwhile: nothing here may lock it again or allocate.
int take_definer(dl_phdr_info* object, std::size_t, void* argument) {
    onednn_search& wanted = *static_cast<onednn_search*>(argument);
    if (object->dlpi_name == nullptr || object->dlpi_name[0] == '\0') return 0;
    if (object->dlpi_addr == wanted.own_base || symbol_in(*object, probe_name) == nullptr) return 0;
    wanted.file = object->dlpi_name;
    return 1;
}

} // namespace

void* first_by_soname(void* (*function)(const char* soname)) {
    if (void* found = function("libdnnl.so.3")) return found;
    constexpr int newest_minor = 30;
    for (int minor = newest_minor; minor > 0; --minor) {
        char name[32];
        std::snprintf(name, sizeof name, "libdnnl.so.3.%d", minor);
        if (void* found = function(name)) return found;
    }
    return function("libdnnl.so");
}

const char* find_loaded_onednn() noexcept {
    Dl_info own{};
    dladdr(reinterpret_cast<const void*>(&first_by_soname), &own);
    onednn_search wanted{reinterpret_cast<ElfW(Addr)>(own.dli_fbase)};
    dl_iterate_phdr(take_definer, &wanted);
    return wanted.file;
}

const char* file_of(const void* address) noexcept {
    Dl_info info{};
    return dladdr(address, &info) != 0 ? info.dli_fname : nullptr;
}

std::string to_string(const abi::version& version) {
    return std::to_string(version.major) + '.' + std::to_string(version.minor) + '.' +
           std::to_string(version.patch);
}

} // namespace maskwise::onednn
