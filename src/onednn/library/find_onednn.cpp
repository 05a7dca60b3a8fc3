#include "onednn/library/find_onednn.hpp"

#include "onednn/library/symbols.hpp"

#include <cstdio>
#include <dlfcn.h>
#include <link.h>

namespace maskwise::onednn {
namespace {

struct onednn_search {
    ElfW(Addr) plugin_base;
    const char* file = nullptr;
};

// The loader holds its lock during the search: nothing here may lock it again or allocate.
int stop_at_definer(dl_phdr_info* object, std::size_t, void* argument) {
    onednn_search& search = *static_cast<onednn_search*>(argument);
    if (object->dlpi_name == nullptr || object->dlpi_name[0] == '\0') return 0;
    if (object->dlpi_addr == search.plugin_base || symbol_in(*object, probe_name) == nullptr)
        return 0;
    search.file = object->dlpi_name;
    return 1;
}

} // namespace

void* first_by_soname(void* (*function)(const char* soname)) {
    if (void* answer = function("libdnnl.so.3")) return answer;
    constexpr int newest_minor = 30;
    for (int minor = newest_minor; minor > 0; --minor) {
        char name[32];
        std::snprintf(name, sizeof name, "libdnnl.so.3.%d", minor);
        if (void* answer = function(name)) return answer;
    }
    return function("libdnnl.so");
}

const char* find_loaded_onednn() noexcept {
    Dl_info plugin{};
    dladdr(reinterpret_cast<const void*>(&first_by_soname), &plugin);
    onednn_search search{reinterpret_cast<ElfW(Addr)>(plugin.dli_fbase)};
    dl_iterate_phdr(stop_at_definer, &search);
    return search.file;
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
