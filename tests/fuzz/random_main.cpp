// The main function of a fuzz target without libFuzzer. Runs the files' inputs, then INPUTS random
// inputs.
//
// usage: PROGRAM INPUTS SEED [FILE...]

#include "random_input.hpp"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

// The arguments that reproduce a failure are `1` and this seed.
unsigned long long current_seed = 0;

constexpr int fatal_signals[] = {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS};
struct sigaction handlers_before[std::size(fatal_signals)];

void print_seed(int number) {
    std::fprintf(stderr, "failed with the arguments 1 %llu\n", current_seed);
    for (std::size_t i = 0; i < std::size(fatal_signals); ++i)
        sigaction(fatal_signals[i], &handlers_before[i], nullptr);
    std::raise(number);
}

void watch_signals() {
    struct sigaction action {};
    action.sa_handler = print_seed;
    for (std::size_t i = 0; i < std::size(fatal_signals); ++i)
        sigaction(fatal_signals[i], &action, &handlers_before[i]);
}

void run(const std::vector<std::uint8_t>& input) {
    LLVMFuzzerTestOneInput(input.data(), input.size());
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s INPUTS SEED [FILE...]\n", argv[0]);
        return 2;
    }
    for (int i = 3; i < argc; ++i) {
        std::fprintf(stderr, "%s\n", argv[i]);
        run(maskwise::fuzz::input_of_file(argv[i]));
    }
    watch_signals();
    const unsigned long long count = std::strtoull(argv[1], nullptr, 10);
    const unsigned long long seed = std::strtoull(argv[2], nullptr, 10);
    for (current_seed = seed; current_seed < seed + count; ++current_seed)
        run(maskwise::fuzz::input_of_seed(current_seed));
    std::printf("%llu inputs, all right\n", count);
    return 0;
}
