#pragma once

#include "data/filler.hpp"

#include <string>

namespace maskwise::bench {

// Inputs that have a file FOLDER/ID hold its bytes, dense. Throws std::runtime_error where the file
// has another size than the tensor.
void read_inputs(const std::string& folder, tensor_map& values);

// FOLDER/ID.out: the tensor's dense bytes. Throws std::runtime_error.
void write_output(const std::string& folder, std::size_t id, const tensor& value);

} // namespace maskwise::bench
