#pragma once

#include "model/graph.hpp"

#include <string>

namespace maskwise::bench {

// Reads a case in the JSON format of oneDNN's graph dump. Sorts it topologically. Unknown ranks,
// extents and strides stay unknown. Throws input_error with the file and the error.
graph read_case(const std::string& path);
graph parse_case(const std::string& text, const std::string& name);

// The graph as a case file (as -v7 prints it); parse_case reads it back to the same graph.
std::string graph_text(const graph& g);

} // namespace maskwise::bench
