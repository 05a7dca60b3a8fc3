// maskwise-info: which libdnnl and libtbb a program started from here would get, whether the plugin
// stands in front, and which kernels this CPU runs. With a program's path, the same for the
// libraries that program names, in its search order.

#include "base/cpu.hpp"
#include "base/error.hpp"
#include "onednn/library/abi.hpp"
#include "onednn/library/soname.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>

namespace {

namespace onednn = maskwise::onednn;

const char* file_of(const void* address) {
    Dl_info info{};
    return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fname : nullptr;
}

void print_row(const char* what, const std::string& value) {
    std::printf("%-14s %s\n", what, value.c_str());
}

std::string target_text() {
    try {
        return std::string(maskwise::to_string(maskwise::active_isa()));
    } catch (const maskwise::error& failure) {
        return failure.what();
    }
}

std::string file_text(void* handle, const char* symbol, const char* soname) {
    const char* file = file_of(dlsym(handle, symbol));
    return file != nullptr ? file : soname;
}

std::string onednn_text() {
    void* const handle =
        onednn::first_by_soname([](const char* name) { return dlopen(name, RTLD_LAZY); });
    if (handle == nullptr) return std::string("not found (") + dlerror() + ')';
    std::string text = file_text(handle, "dnnl_version", "libdnnl.so");
    using version_function = const onednn::abi::version* (*)();
    if (const auto version = reinterpret_cast<version_function>(dlsym(handle, "dnnl_version"))) {
        const auto* v = version();
        text += "  (oneDNN " + std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' +
                std::to_string(v->patch) + ')';
    }
    if (dlsym(handle, onednn::probe_name) == nullptr) text += "  without the Graph API";
    return text;
}

std::string libtbb_text() {
    const char* const soname = "libtbb.so.12";
    void* const handle = dlopen(soname, RTLD_LAZY);
    if (handle == nullptr) return std::string("not found (") + dlerror() + ')';
    return file_text(handle, "TBB_runtime_interface_version", soname);
}

std::string plugin_text() {
    const char* file = file_of(dlsym(RTLD_DEFAULT, onednn::probe_name));
    const bool in_front = file != nullptr && std::strstr(file, "libmaskwise_onednn") != nullptr;
    if (in_front) return std::string("in front: ") + file;
    return "not in front (set LD_PRELOAD=<prefix>/lib/libmaskwise_onednn.so)";
}

int print_environment() {
    print_row("maskwise", MASKWISE_VERSION);
    print_row("plugin", plugin_text());
    print_row("libdnnl", onednn_text());
    print_row("libtbb", libtbb_text());
    print_row("kernels", target_text());
    const char* disable = std::getenv("MASKWISE_DISABLE");
    if (disable != nullptr) print_row("switched off", std::string("MASKWISE_DISABLE=") + disable);
    return 0;
}

// The dynamic loader lists what a program would load, in search order, when it is asked to trace.
// Its lines about the libraries that matter here, or nothing where no shell can be had.
std::string traced_libraries(const char* program) {
    setenv("MASKWISE_INFO_PROGRAM", program, 1);
    FILE* const lines = popen("LD_TRACE_LOADED_OBJECTS=1 \"$MASKWISE_INFO_PROGRAM\" | "
                              "grep -E 'libmaskwise_onednn|dnnl|libtbb[.]so'",
                              "r");
    std::string text;
    char piece[512];
    while (lines != nullptr && std::fgets(piece, sizeof piece, lines) != nullptr) text += piece;
    if (lines != nullptr) pclose(lines);
    return text;
}

int print_program(const char* program) {
    const std::string libraries = traced_libraries(program);
    std::printf("libraries of %s, first one wins:\n%s", program, libraries.c_str());
    if (libraries.find("dnnl") == std::string::npos)
        std::puts(
            "no oneDNN among them. A program may open one later, under any name, as Python's\n"
            "extensions do: run it with the plugin preloaded and MASKWISE_VERBOSE=1. A line\n"
            "`maskwise,load` names the oneDNN behind the plugin, `maskwise,idle` one whose calls\n"
            "do not reach the plugin; no line at all means that no shared oneDNN was loaded.");
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::strcmp(argv[1], "--help") == 0) {
        std::puts("maskwise-info            what a program started from here would get\n"
                  "maskwise-info PROGRAM    what PROGRAM would load, in search order");
        return 0;
    }
    return argc > 1 ? print_program(argv[1]) : print_environment();
}
