// A fuzz target without libFuzzer: inputs from files, then random ones at full speed.
// usage: PROGRAM INPUTS SEED [FILE...]

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using bytes = std::vector<std::uint8_t>;

// What a failure is found again by: the seed to give with one input.
unsigned long long current_seed = 0;

void tell_seed(int number) {
    std::fprintf(stderr, "failed with the arguments 1 %llu\n", current_seed);
    std::signal(number, SIG_DFL);
    std::raise(number);
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
    for (const int number : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS})
        std::signal(number, tell_seed);
    const unsigned long long count = std::strtoull(argv[1], nullptr, 10);
    const unsigned long long seed = std::strtoull(argv[2], nullptr, 10);
    for (unsigned long long i = 0; i < count; ++i) run_random(seed + i);
    std::printf("%llu inputs, all right\n", count);
    return 0;
}
