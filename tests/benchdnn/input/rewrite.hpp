#pragma once

#include "input/case_config.hpp"
#include "model/graph.hpp"

namespace maskwise::bench {

// Applies the case's options to the graph read from its file. Order: op kinds, attributes, input
// shapes and mb, output inference, output shapes, fpmath, types, properties.
// Throws input_error on an id that the graph lacks or a value that does not parse.
void rewrite(graph& g, const case_config& config);

} // namespace maskwise::bench
