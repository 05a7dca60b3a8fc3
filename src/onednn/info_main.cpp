// maskwise-info prints which libdnnl and libtbb a program loads in this environment, whether the
// plugin precedes libdnnl, and which kernels this CPU runs. With a program's path, prints which of
// these libraries the file names. With a process id, prints the plugin, its state and the libdnnl
// of that process.

#include "base/cpu.hpp"
#include "base/error.hpp"
#include "onednn/info_process.hpp"
#include "onednn/library/find_onednn.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace {

namespace onednn = maskwise::onednn;

void print_row(const char* title, const std::string& value) {
    std::printf("%-14s %s\n", title, value.c_str());
}

std::string target_text() {
    try {
        return std::string(maskwise::to_string(maskwise::active_isa()));
    } catch (const maskwise::error& failure) {
        return failure.what();
    }
}

std::string file_text(void* handle, const char* symbol, const char* soname) {
    const char* file = onednn::file_of(dlsym(handle, symbol));
    return file != nullptr ? file : soname;
}

std::string onednn_text() {
    const auto open_library = [](const char* name) { return dlopen(name, RTLD_LAZY); };
    void* const handle = onednn::first_by_soname(open_library);
    if (handle == nullptr) return std::string("not found (") + dlerror() + ')';
    std::string text = file_text(handle, "dnnl_version", "libdnnl.so");
    using version_function = const onednn::abi::version* (*)();
    if (const auto version = reinterpret_cast<version_function>(dlsym(handle, "dnnl_version")))
        text += "  (oneDNN " + onednn::to_string(*version()) + ')';
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
    const char* file = onednn::file_of(dlsym(RTLD_DEFAULT, onednn::probe_name));
    const bool in_front = file != nullptr && std::strstr(file, "libmaskwise_onednn") != nullptr;
    if (in_front) return std::string("in front: ") + file;
    return "not in front (set LD_PRELOAD to the path of libmaskwise_onednn.so)";
}

int print_environment() {
    print_row("maskwise", MASKWISE_VERSION);
    print_row("plugin", plugin_text());
    print_row("libdnnl", onednn_text());
    print_row("libtbb", libtbb_text());
    print_row("kernels", target_text());
    const char* disable = std::getenv("MASKWISE_DISABLE");
    if (disable != nullptr) print_row("environment", std::string("MASKWISE_DISABLE=") + disable);
    return 0;
}

// Runs neither the program nor its loader.
int print_program(const std::string& path) {
    std::ifstream file(std::filesystem::is_regular_file(path) ? path : "", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (!bytes.starts_with("\177ELF"))
        throw maskwise::error('\'' + path + "' is not a readable ELF file");
    const auto is_named = [&](const char* name) { return bytes.find(name) != std::string::npos; };
    for (const char* name : {"libmaskwise_onednn.so", "libdnnl.so", "libtbb.so"})
        std::printf("%-21s %s\n", name, is_named(name) ? "named" : "not named");
    if (!is_named("libdnnl.so"))
        std::puts(
            "A program may open oneDNN later, under any name, as Python's extensions do. Run it\n"
            "with the plugin preloaded and MASKWISE_VERBOSE=1. The line `maskwise,load` names the\n"
            "oneDNN that the plugin calls. The line `maskwise,idle` names a oneDNN whose calls do\n"
            "not reach the plugin. Without either line, the program loaded no shared oneDNN.");
    return 0;
}

std::optional<int> number_of(const std::string& text) {
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, failure] = std::from_chars(text.data(), end, number);
    if (text.empty() || rest != end || failure != std::errc{}) return std::nullopt;
    return number;
}

} // namespace

int main(int argc, char** argv) {
    const std::string usage =
        "maskwise-info            the libraries and kernels of a program in this environment\n"
        "maskwise-info PROGRAM    which of these libraries the file names; does not run PROGRAM\n"
        "maskwise-info PID        whether the plugin is active in a running process\n";
    const std::string argument = argc > 1 ? argv[1] : "";
    if (argument == "--help") {
        std::fputs(usage.c_str(), stdout);
        return 0;
    }
    if (argc > 2 || argument.starts_with('-')) {
        const std::string wrong =
            argc > 2 ? std::to_string(argc - 1) + " arguments, expected one program or process"
                     : "unknown option '" + argument + "'";
        std::fprintf(stderr, "maskwise-info: %s\n%s", wrong.c_str(), usage.c_str());
        return 2;
    }
    try {
        if (const auto pid = number_of(argument)) return onednn::print_process(*pid);
        return argc > 1 ? print_program(argument) : print_environment();
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "maskwise-info: %s\n", failure.what());
        return 1;
    }
}
