#pragma once

// The patterns that oneDNN's driver recognizes in a graph. They decide where the reference rounds,
// and which inputs hold a mask.

#include "model/graph.hpp"

#include <vector>

namespace maskwise::bench::driver {

enum class pattern { other, attention, attention_backward };

pattern recognize(const graph& g);

// The first op that reads output `index`, or null.
const op* first_reader(const graph& g, const op& o, std::size_t index = 0);

// To which types the reference rounds the inputs of an op before it runs, and its outputs
// afterwards; undef: not at all.
struct roundings {
    std::vector<data_type> inputs;
    std::vector<data_type> outputs;
};

// For `o`, a member of the partition `part` of `whole`. The library may keep f32 between any two
// ops, except around attention's SoftMax and the last products of its backward graph.
roundings roundings_of(const graph& whole, const graph& part, const op& o);

} // namespace maskwise::bench::driver
