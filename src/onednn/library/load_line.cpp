#include "onednn/library/load_line.hpp"

#include "base/cpu.hpp"
#include "base/error.hpp"
#include "base/verbose.hpp"

#include <dlfcn.h>
#include <new>
#include <string>

namespace maskwise::onednn {
namespace {

std::string isa_text() {
    try {
        return std::string(to_string(active_isa()));
    } catch (const error& failure) {
        return failure.what();
    }
}

const char* runtime_text(unsigned runtime) {
    switch (runtime) {
    case 1:
        return "sequential";
    case 2:
        return "openmp";
    case 4:
        return "tbb";
    case abi::runtime_threadpool:
        return "threadpool";
    case abi::runtime_sycl:
        return "sycl";
    default:
        return "unknown runtime";
    }
}

// A libtbb older than oneDNN's own is the first thing to look for where oneDNN finds no CPU.
std::string tbb_text() {
    Dl_info info{};
    const void* address = dlsym(RTLD_DEFAULT, "TBB_runtime_interface_version");
    return dladdr(address, &info) != 0 ? info.dli_fname : "not loaded";
}

} // namespace

void print_load_line(const real_library& library, const char* why_inactive) noexcept try {
    const auto& version = library.version;
    print_verbose(
        "load,version " MASKWISE_VERSION ",oneDNN " + std::to_string(version.major) + '.' +
        std::to_string(version.minor) + '.' + std::to_string(version.patch) + ' ' +
        runtime_text(version.cpu_runtime) + ',' + library.file + " (" + library.how + "),libtbb " +
        tbb_text() + ",target " + isa_text() +
        (why_inactive == nullptr ? ",active" : std::string(",inactive: ") + why_inactive));
} catch (const std::bad_alloc&) {
}

} // namespace maskwise::onednn
