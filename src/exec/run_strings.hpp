#pragma once

#include "maskwise/maskwise.hpp"

namespace maskwise {

// run_select for a plan of strings: elements are std::string objects, copied by assignment. What
// copying throws is thrown when every thread has stopped; elements of dst then hold their old or
// their new value.
void run_strings(const select_plan& plan, const void* cond, const void* src_0, const void* src_1,
                 void* dst, const parallel_loop* loop = nullptr);

} // namespace maskwise
