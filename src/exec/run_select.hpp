#pragma once

#include "maskwise/maskwise.hpp"

namespace maskwise {

// dst = cond ? src_0 : src_1, as the plan's descriptors lay the buffers out. A pointer is the
// address of element {0,...,0}; it may be null where the tensor is empty. dst may be exactly
// src_0's or src_1's buffer where their descriptors are equal; any other overlap is undefined.
// Returns when dst is written. Runs in the caller's task arena, or on the threads of the loop;
// neither allocates nor locks by itself, throws only what the loop throws. Strings are objects,
// copied by assignment: what that throws is thrown when every thread has stopped; elements of dst
// then hold their old or their new value. Any thread.
void run_select(const select_plan& plan, const void* cond, const void* src_0, const void* src_1,
                void* dst, const parallel_loop* loop = nullptr);

// The same with a plan of make_copy_plan.
void run_copy(const select_plan& plan, const void* from, void* to,
              const parallel_loop* loop = nullptr);

} // namespace maskwise
