#include "cpu_plugin.hpp"

#include <link.h>
#include <unwind.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace maskwise::openvino {
namespace {

struct code_range {
    std::uintptr_t begin, end;
};
using code_ranges = std::vector<code_range>;

// libopenvino_intel_cpu_plugin.so, on other processors arm or riscv.
bool is_cpu_plugin(const char* path) {
    const char* const slash = std::strrchr(path, '/');
    const char* const name = slash == nullptr ? path : slash + 1;
    return std::strncmp(name, "libopenvino_", 12) == 0 &&
           std::strstr(name, "_cpu_plugin") != nullptr;
}

int add_code(dl_phdr_info* library, std::size_t /*size*/, void* found) {
    if (!is_cpu_plugin(library->dlpi_name)) return 0;
    for (const auto *part = library->dlpi_phdr, *end = part + library->dlpi_phnum; part != end;
         ++part)
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0) {
            const std::uintptr_t begin = library->dlpi_addr + part->p_vaddr;
            static_cast<code_ranges*>(found)->push_back({begin, begin + part->p_memsz});
        }
    return 0;
}

struct search {
    code_ranges code;
    bool found = false;
};

_Unwind_Reason_Code look_at(_Unwind_Context* frame, void* state) {
    auto& sought = *static_cast<search*>(state);
    const std::uintptr_t address = _Unwind_GetIP(frame);
    for (const auto& range : sought.code)
        if (address > range.begin && address <= range.end) sought.found = true;
    return sought.found ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

} // namespace

bool is_called_by_cpu_plugin() {
    search sought;
    dl_iterate_phdr(add_code, &sought.code);
    if (!sought.code.empty()) _Unwind_Backtrace(look_at, &sought);
    return sought.found;
}

} // namespace maskwise::openvino
