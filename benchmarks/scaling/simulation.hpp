#pragma once

#include "scaling/attention_data.hpp"

namespace maskwise::bench {

// Seconds of an execution that is divided for some workers, by one thread: of each item of each
// phase, and of all that no worker shares.
struct recorded {
    std::vector<std::vector<double>> phases;
    double serial = 0;

    double sum() const;
    // Where each worker takes the next item as soon as it has none. Workers of a phase begin at
    // once, and wait for nothing but items.
    double simulate(int workers) const;
};

// The least cost of each item in a few executions, without the start and the end of threads.
recorded record(attention_problem& problem, int workers, int turns);

} // namespace maskwise::bench
