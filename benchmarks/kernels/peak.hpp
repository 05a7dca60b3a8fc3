#pragma once

#include "base/cpu.hpp"

namespace maskwise::bench {

// Multiply-adds a second of this many threads at once, two operations each, from registers alone:
// by vectors of f32, or where `in_pairs` by dot products of bf16 or by tiles. The best of some
// tries. 0 where the instruction set has no such products.
double measured_peak(isa target, bool in_pairs, int threads);

} // namespace maskwise::bench
