#pragma once

#include "model/graph.hpp"

#include <string>

namespace maskwise::bench {

// Reads a case in the JSON format of oneDNN's graph dump, and sorts its operators topologically.
// Unknown ranks and extents stay unknown; unknown strides become dense. Throws input_error with the
// file's name.
graph read_case(const std::string& path);
graph parse_case(const std::string& text, const std::string& name);

// The graph as the text of a case file, which -v7 prints and parse_case can read.
std::string graph_text(const graph& g);

} // namespace maskwise::bench
