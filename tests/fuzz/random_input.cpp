#include "random_input.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

namespace maskwise::fuzz {

std::vector<std::uint8_t> input_of_file(const char* name) {
    std::ifstream file(name, std::ios::binary);
    std::vector<std::uint8_t> input{std::istreambuf_iterator<char>(file), {}};
    if (!file) {
        std::fprintf(stderr, "cannot read %s\n", name);
        std::exit(2);
    }
    return input;
}

std::vector<std::uint8_t> input_of_seed(unsigned long long seed) {
    std::mt19937_64 random(seed);
    // A target's draws go on from there by themselves.
    std::vector<std::uint8_t> input(random() % 1000 + 24);
    for (auto& byte : input) byte = static_cast<std::uint8_t>(random());
    return input;
}

} // namespace maskwise::fuzz
