#pragma once

// How oneDNN's driver compares a partition's result with its reference. docs/harness.md states the
// rule.

#include "compare/compare.hpp"
#include "model/graph.hpp"

namespace maskwise::bench::driver {

struct rule {
    double relative = 0.0;    // an element may be so far off; 0: it must be equal
    double absolute = 0.0;    // or less than this
    bool has_eltwise = false; // an element-wise function took part: its own, wider limits
    bool nan_allowed = false; // equal infinities and NaNs agree
};

// For output `index` of `o`, a member of the partition `part`.
rule rule_for(const graph& part, const op& o, std::size_t index);

// `reference` is f32 (or an integer type), `got` has the tensor's declared type.
comparison compare_as_driver(const tensor& reference, const tensor& got, const rule& r);

} // namespace maskwise::bench::driver
