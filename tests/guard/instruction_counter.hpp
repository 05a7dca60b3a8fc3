#pragma once

namespace maskwise::guard {

// Counts this thread's instructions from start_counting to the call of stop_counting. The processor
// traps after each instruction, so every instruction set is counted, and the count does not depend
// on what else the machine does.
void start_counting();
long stop_counting();

} // namespace maskwise::guard
