#pragma once

// How oneDNN's driver compares a partition's result with the reference.

#include "compare/compare.hpp"
#include "model/graph.hpp"

namespace maskwise::bench::driver {

struct rule {
    double relative = 0.0;    // allowed relative error of an element
    double absolute = 0.0;    // an element also agrees if its absolute error is below this
    bool has_eltwise = false; // an earlier op of the partition or the op itself is eltwise, so
                              // eltwise's wider limits also apply
    bool nan_allowed = false; // NaN agrees with NaN, infinity with equal infinity
};

// Returns the rule for output `index` of `o`, an op of the partition `part`.
rule rule_for(const graph& part, const op& o, std::size_t index);

// `reference` has f32 or an integer type. `got` has the tensor's declared type.
comparison compare_as_driver(const tensor& reference, const tensor& got, const rule& r);

} // namespace maskwise::bench::driver
