#pragma once

#include "description.hpp"

namespace maskwise::fuzz {

// Counts of graphs and outcomes.
struct tally {
    long graphs = 0, merged = 0, composites = 0;
    // Graphs: both run it, neither does, the plugin alone does.
    long compared = 0, refused = 0, only_own = 0;
    // Tensors, by the operators' definitions; the last: the plugin's, NaNs became numbers in
    // SoftMax.
    long other_is_wrong = 0, both_are_wrong = 0, unreached_are_wrong = 0, without_nans = 0;
    // Graphs that the plugin runs.
    long with_nans = 0, with_constants = 0, with_scalars = 0;
};

// Draws a graph, runs it with the plugin and with oneDNN alone, and compares tensor by tensor.
// `is_alone` is set while oneDNN alone runs. Ends the process if the plugin is wrong. A program
// without the plugin only runs the graph.
void check_chain(generator& random, generator& later, tally& counted, volatile bool& is_alone);

} // namespace maskwise::fuzz
