// A fuzz target without libFuzzer: inputs from files, then random ones at full speed.
// usage: PROGRAM INPUTS SEED [FILE...]

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// A target may have one: whether a signal that comes now is no fault of what it tests.
extern "C" __attribute__((weak)) bool is_running_foreign_code();

namespace {

using bytes = std::vector<std::uint8_t>;

// What a failure is found again by: the seed to give with one input.
unsigned long long current_seed = 0, end_seed = 0;

constexpr int ends[] = {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS};
struct sigaction handlers_before[std::size(ends)];

// How the program was begun, the loader's part of it, too. The last are its own arguments.
std::vector<std::string> command;
std::size_t own_arguments = 0;

void read_command(int argc) {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    for (std::string each; std::getline(file, each, '\0');) command.push_back(each);
    command.resize(command.size() - static_cast<std::size_t>(argc) + 3); // without files
    own_arguments = command.size() - 2;
}

// The state that a foreign fault leaves is of no use: from the next input on in a new process.
void begin_anew() {
    command[own_arguments] = std::to_string(end_seed - current_seed - 1);
    command[own_arguments + 1] = std::to_string(current_seed + 1);
    std::vector<char*> arguments;
    for (auto& each : command) arguments.push_back(each.data());
    arguments.push_back(nullptr);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execv("/proc/self/exe", arguments.data());
}

void tell_seed(int number) {
    const bool is_foreign = is_running_foreign_code != nullptr && is_running_foreign_code();
    if (is_foreign) {
        std::fprintf(stderr, "foreign code ends with the arguments 1 %llu\n", current_seed);
        begin_anew();
    }
    std::fprintf(stderr, "failed with the arguments 1 %llu\n", current_seed);
    for (std::size_t i = 0; i < std::size(ends); ++i)
        sigaction(ends[i], &handlers_before[i], nullptr);
    std::raise(number);
}

void watch_signals() {
    struct sigaction action {};
    action.sa_handler = tell_seed;
    for (std::size_t i = 0; i < std::size(ends); ++i)
        sigaction(ends[i], &action, &handlers_before[i]);
}

void run_file(const char* name) {
    std::ifstream file(name, std::ios::binary);
    const bytes input{std::istreambuf_iterator<char>(file), {}};
    if (!file) {
        std::fprintf(stderr, "cannot read %s\n", name);
        std::exit(2);
    }
    std::fprintf(stderr, "%s\n", name);
    LLVMFuzzerTestOneInput(input.data(), input.size());
}

void run_random(unsigned long long seed) {
    current_seed = seed;
    std::mt19937_64 random(seed);
    bytes input(random() % 1000 + 24); // a target's draws go on from there by themselves
    for (auto& byte : input) byte = static_cast<std::uint8_t>(random());
    LLVMFuzzerTestOneInput(input.data(), input.size());
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s INPUTS SEED [FILE...]\n", argv[0]);
        return 2;
    }
    for (int i = 3; i < argc; ++i) run_file(argv[i]);
    read_command(argc);
    watch_signals();
    const unsigned long long count = std::strtoull(argv[1], nullptr, 10);
    const unsigned long long seed = std::strtoull(argv[2], nullptr, 10);
    end_seed = seed + count;
    for (unsigned long long i = seed; i < end_seed; ++i) run_random(i);
    std::printf("%llu inputs, all right\n", count);
    return 0;
}
