#include "onednn/library/find_onednn.hpp"

#include "onednn/library/symbols.hpp"

#include <cstdio>
#include <dlfcn.h>

namespace maskwise::onednn {
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
    const void* const this_base = base_of(reinterpret_cast<const void*>(&first_by_soname));
    const char* file = nullptr;
    visit_loaded([&](const dl_phdr_info& object) {
        const bool is_named = object.dlpi_name != nullptr && object.dlpi_name[0] != '\0';
        const bool is_this = reinterpret_cast<const void*>(object.dlpi_addr) == this_base;
        if (!is_named || is_this || symbol_in(object, probe_name) == nullptr) return false;
        file = object.dlpi_name;
        return true;
    });
    return file;
}

const void* base_of(const void* address) noexcept {
    Dl_info info{};
    return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
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
