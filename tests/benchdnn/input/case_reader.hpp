#pragma once

#include "model/graph.hpp"

#include <string>

namespace maskwise::bench {

// Reads a case in the JSON format of oneDNN's graph dump. Sorted topologically, unknown ranks,
// extents and strides kept as unknown. Throws input_error naming the file and what is wrong.
graph read_case(const std::string& path);
graph parse_case(const std::string& text, const std::string& name);

} // namespace maskwise::bench
