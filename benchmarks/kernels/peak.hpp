#pragma once

#include "base/cpu.hpp"

namespace maskwise::bench {

// Operations per second on `threads` threads at once, without memory accesses; a multiply-add
// counts as two operations. Measures f32 vectors; with `in_pairs`, bf16 dot products or AMX tiles.
// Returns the sum of each thread's best attempt. Returns 0 if the instruction set or the CPU does
// not have these products, and for bf16 on ARM, which is not measured.
double measured_peak(isa target, bool in_pairs, int threads);

} // namespace maskwise::bench
