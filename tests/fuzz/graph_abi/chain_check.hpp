#pragma once

#include "description.hpp"

namespace maskwise::fuzz {

struct tally {
    long graphs = 0, merged = 0, composites = 0;
    long compared = 0; // graphs that run with and without the plugin
    long refused = 0;  // graphs that run neither with nor without the plugin
    long only_own = 0; // graphs that run only with the plugin
    // Tensors that are wrong by the operators' definitions.
    long other_is_wrong = 0;      // wrong with oneDNN alone, right with the plugin
    long both_are_wrong = 0;      // wrong with oneDNN alone and with the plugin
    long unreached_are_wrong = 0; // wrong, computed by oneDNN with the plugin, not computed without
    long without_nans = 0;        // with the plugin, numbers instead of NaNs after SoftMax
    // Graphs that the plugin runs.
    long with_nans = 0, with_constants = 0, with_scalars = 0;
};

// Draws a graph, runs it with the plugin and with oneDNN alone, and compares the tensors.
// `is_alone` is set while oneDNN alone runs. Aborts if the plugin is wrong. Without the plugin,
// only runs the graph.
void check_chain(generator& random, generator& later, tally& counted, volatile bool& is_alone);

} // namespace maskwise::fuzz
