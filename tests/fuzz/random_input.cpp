#include "random_input.hpp"

#include "support/case_generator.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

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
    test::generator random(std::uint64_t{seed});
    // A target that needs more draws than bytes continues with a generator seeded by the size.
    std::vector<std::uint8_t> input(random() % 1000 + 24);
    for (auto& byte : input) byte = static_cast<std::uint8_t>(random());
    return input;
}

} // namespace maskwise::fuzz
