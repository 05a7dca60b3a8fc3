#pragma once

namespace maskwise::guard {

// How many instructions this thread takes from start_counting to the call of stop_counting. The
// processor traps after each of them, so every instruction set is counted, and a count is the same
// whatever else the machine does.
void start_counting();
long stop_counting();

} // namespace maskwise::guard
