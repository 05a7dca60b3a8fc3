// libmaskwise_openvino_extension.so, which core.add_extension takes. It opens
// libmaskwise_openvino.so beside it, for the OpenVINO that asks: that library names none, since
// each release has another name, and finds OpenVINO's symbols among the global ones of the process.
// A program that is linked with OpenVINO has them there; Python and other hosts that load OpenVINO
// at run time do not.
#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace {

std::string file_of(const void* address) {
    Dl_info found;
    return dladdr(address, &found) != 0 ? found.dli_fname : "";
}

[[noreturn]] void refuse(const std::string& caller) {
    const char* const reason = dlerror();
    throw std::runtime_error("Maskwise: does not run in " + caller +
                             ", it needs OpenVINO 2026.0 or newer" + (reason ? ": " : "") +
                             (reason ? reason : ""));
}

} // namespace

// OpenVINO's std::vector<ov::Extension::Ptr>, of which nothing is known here. OpenVINO expects
// exceptions of it.
extern "C" __attribute__((visibility("default"))) void create_extensions(void* extensions) {
    const std::string caller = file_of(__builtin_return_address(0));
    dlopen(caller.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
    const std::string own = file_of(reinterpret_cast<const void*>(&create_extensions));
    const std::string beside = own.substr(0, own.rfind('/') + 1) + "libmaskwise_openvino.so";
    void* const library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) refuse(caller);
    void* const create = dlsym(library, "create_extensions");
    if (create == nullptr) refuse(caller);
    reinterpret_cast<void (*)(void*)>(create)(extensions);
}
