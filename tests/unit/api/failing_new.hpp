#pragma once

#include <cstddef>

// While not 0, operator new throws std::bad_alloc for exactly so many bytes, in the whole process.
void fail_allocations_of(std::size_t bytes);
