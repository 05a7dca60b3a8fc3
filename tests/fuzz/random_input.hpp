#pragma once

#include <cstdint>
#include <vector>

namespace maskwise::fuzz {

// Inputs for a fuzz target without libFuzzer. A file that cannot be read ends the program with
// status 2.
std::vector<std::uint8_t> input_of_file(const char* name);
std::vector<std::uint8_t> input_of_seed(unsigned long long seed);

} // namespace maskwise::fuzz
