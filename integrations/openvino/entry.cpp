// core.add_extension loads libmaskwise_openvino_extension.so, which opens libmaskwise_openvino.so
// from the same folder. libmaskwise_openvino.so links with no OpenVINO, because OpenVINO's soname
// differs in every release. The library uses the global symbols of the process. Python and other
// hosts that load OpenVINO at run time lack these symbols, so this file first makes the symbols of
// the caller's OpenVINO global.
#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace {

std::string file_of(const void* address) {
    Dl_info library;
    return dladdr(address, &library) != 0 ? library.dli_fname : "";
}

[[noreturn]] void refuse(const std::string& caller) {
    const char* const reason = dlerror();
    throw std::runtime_error("Maskwise: does not run in " + caller +
                             ", it needs OpenVINO 2026.0 or newer" + (reason ? ": " : "") +
                             (reason ? reason : ""));
}

} // namespace

// `extensions` is OpenVINO's std::vector<ov::Extension::Ptr>. OpenVINO allows this function to
// throw.
extern "C" __attribute__((visibility("default"))) void create_extensions(void* extensions) {
    const std::string caller = file_of(__builtin_return_address(0));
    dlopen(caller.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
    const std::string this_file = file_of(reinterpret_cast<const void*>(&create_extensions));
    const std::string implementation =
        this_file.substr(0, this_file.rfind('/') + 1) + "libmaskwise_openvino.so";
    void* const library = dlopen(implementation.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) refuse(caller);
    void* const create = dlsym(library, "create_extensions");
    if (create == nullptr) refuse(caller);
    reinterpret_cast<void (*)(void*)>(create)(extensions);
}
