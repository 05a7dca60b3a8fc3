#pragma once

#include "base/cpu.hpp"

namespace maskwise::bench {

// Operations per second of multiply-adds (two operations each) on `threads` threads at once, from
// registers: vectors of f32, or with `in_pairs` dot products of bf16 or tiles. The best of several
// tries. 0 if the instruction set does not have them.
double measured_peak(isa target, bool in_pairs, int threads);

} // namespace maskwise::bench
