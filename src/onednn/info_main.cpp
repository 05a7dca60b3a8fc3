// maskwise-info: which libdnnl and libtbb a program started from here would get, whether the plugin
// stands in front, and which kernels this CPU runs. With a program's path, the same for the
// libraries that program names, in its search order.

#include "base/cpu.hpp"
#include "base/error.hpp"
#include "onednn/library/find_onednn.hpp"
#include "onednn/program_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

namespace onednn = maskwise::onednn;

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
    if (disable != nullptr) print_row("switched off", std::string("MASKWISE_DISABLE=") + disable);
    return 0;
}

// As a shell finds it; a name that is nowhere in PATH is looked for here.
std::string find_program(const std::string& name) {
    const char* const path = std::getenv("PATH");
    std::istringstream folders(name.find('/') == std::string::npos && path != nullptr ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string file = (folder.empty() ? "." : folder) + '/' + name;
        std::error_code none;
        if (std::filesystem::is_regular_file(file, none) && access(file.c_str(), X_OK) == 0)
            return file;
    }
    return name;
}

struct finished {
    int status = 0; // as waitpid's
    std::string text;
};

finished run(const std::vector<std::string>& words) {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw maskwise::error("no pipe can be had");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const int to : {STDOUT_FILENO, STDERR_FILENO})
        posix_spawn_file_actions_adddup2(&actions, ends[1], to);
    pid_t child = 0;
    const int failed =
        posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    finished done;
    char piece[512];
    for (ssize_t n = 0; failed == 0 && (n = read(ends[0], piece, sizeof piece)) > 0;)
        done.text.append(piece, static_cast<std::size_t>(n));
    close(ends[0]);
    if (failed != 0) throw maskwise::error("cannot run " + words[0] + ": " + std::strerror(failed));
    if (waitpid(child, &done.status, 0) != child)
        throw maskwise::error("how " + words[0] + " ended is not known: " + std::strerror(errno));
    return done;
}

// The loader lists what the program would load, in search order, and runs none of it. Its lines,
// which begin with a tab, about the libraries that matter here.
std::string listed_libraries(const std::string& program) {
    // A real path: the loader's $ORIGIN, and no option of it.
    const std::string file = std::filesystem::canonical(program);
    const finished done = run({onednn::own_loader(), "--list", file});
    if (done.status != 0)
        throw maskwise::error(onednn::own_loader() + " cannot list '" + program +
                              "': " + done.text);
    std::string text;
    std::istringstream lines(done.text);
    for (std::string line; std::getline(lines, line);)
        for (const char* name : {"libmaskwise_onednn", "dnnl", "libtbb.so"})
            if (line.starts_with('\t') && line.find(name) != std::string::npos) {
                text += line + '\n';
                break;
            }
    return text;
}

int print_program(const std::string& name) {
    const std::string program = find_program(name);
    onednn::check_program(program);
    const std::string libraries = listed_libraries(program);
    std::printf("libraries of %s, first one wins:\n%s", program.c_str(), libraries.c_str());
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
    const std::string usage =
        "maskwise-info            what a program started from here would get\n"
        "maskwise-info PROGRAM    what PROGRAM would load, in search order; it is not run\n";
    const std::string argument = argc > 1 ? argv[1] : "";
    if (argument == "--help") {
        std::fputs(usage.c_str(), stdout);
        return 0;
    }
    if (argc > 2 || argument.starts_with('-')) {
        const std::string wrong =
            argc > 2 ? std::to_string(argc - 1) + " arguments, expected one program"
                     : "unknown option '" + argument + "'";
        std::fprintf(stderr, "maskwise-info: %s\n%s", wrong.c_str(), usage.c_str());
        return 2;
    }
    try {
        return argc > 1 ? print_program(argument) : print_environment();
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "maskwise-info: %s\n", failure.what());
        return 1;
    }
}
