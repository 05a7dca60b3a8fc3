#include "process/crash_note.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace maskwise::bench {
namespace {

char note[4096]; // a signal handler may not allocate

void print(const char* text) {
    [[maybe_unused]] const auto ignored = write(STDERR_FILENO, text, std::strlen(text));
}

void say_and_die(int signal) {
    print("maskwise-bench: the process crashed in (go on after crashes with --isolate):\n");
    print(note);
    print("\n");
    std::signal(signal, SIG_DFL);
    raise(signal);
}

} // namespace

void note_test(const std::string& repro) {
    const std::size_t length = std::min(repro.size(), sizeof note - 1);
    std::copy_n(repro.data(), length, note);
    note[length] = '\0';
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
        std::signal(signal, say_and_die);
}

} // namespace maskwise::bench
