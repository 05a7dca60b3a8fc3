#pragma once

// The patterns that oneDNN's driver recognizes. The pattern decides where the reference rounds, and
// which inputs hold a mask.

#include "model/graph.hpp"

#include <vector>

namespace maskwise::bench::driver {

enum class pattern { other, attention, attention_backward };

pattern recognize(const graph& g);

// Returns the first op that reads output `index` of `o`, or null.
const op* first_reader(const graph& g, const op& o, std::size_t index = 0);

// The reference rounds an op's inputs to these types before the op, and its outputs after the op.
// undef: no rounding.
struct roundings {
    std::vector<data_type> inputs;
    std::vector<data_type> outputs;
};

// `o` is an op of the partition `part` of `whole`. The reference rounds only at attention's SoftMax
// and at some MatMuls of attention's backward graph. Other values stay f32.
roundings roundings_of(const graph& whole, const graph& part, const op& o);

} // namespace maskwise::bench::driver
