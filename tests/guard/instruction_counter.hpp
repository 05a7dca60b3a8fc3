#pragma once

namespace maskwise::guard {

// Counts the instructions that this thread runs between start_counting and stop_counting. The
// processor traps after each instruction. So the count covers every instruction set, and other load
// on the machine does not change the count.
void start_counting();
long stop_counting();

} // namespace maskwise::guard
