#pragma once

#include "input/case_config.hpp"
#include "model/graph.hpp"

namespace maskwise::bench {

// Applies the case's options to the graph of its file, in this order: op kinds, attributes, input
// shapes, mb, output shapes, fpmath mode, types, properties. If an option changes a shape, an
// attribute or an op, infers the output shapes that no option sets. Throws input_error on a value
// that does not parse and on an unknown id. An unknown id in --in-shapes is ignored and reported on
// stderr.
void rewrite(graph& g, const case_config& config);

} // namespace maskwise::bench
