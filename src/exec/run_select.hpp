#pragma once

#include "maskwise/maskwise.hpp"

namespace maskwise {

// Computes dst = cond ? src_0 : src_1 in the layouts of the plan's descriptions. A pointer is the
// address of element {0, ..., 0}, and may be null if the tensor is empty. dst may be the buffer of
// src_0 or src_1 if their descriptions are equal; any other overlap is undefined. Returns when dst
// is written. Runs in the caller's task arena, or on the threads of the loop. Takes no lock, and
// allocates only to copy strings. Exceptions of the loop pass through. Thread-safe. Strings are
// copied by assignment. If an assignment throws, the exception is rethrown after every thread has
// stopped, and each element of dst has its old or its new value.
void run_select(const select_plan& plan, const void* cond, const void* src_0, const void* src_1,
                void* dst, const parallel_loop* loop = nullptr);

// Runs a plan of make_copy_plan.
void run_copy(const select_plan& plan, const void* src, void* dst,
              const parallel_loop* loop = nullptr);

} // namespace maskwise
