#pragma once

#include <cstdint>

namespace maskwise::contract {

// operator new of this process. It knows whether the caller is Maskwise's plugin, directly or
// through the C++ library. Maskwise's allocations can be made to fail.
namespace own_allocations {

// From now on the `nth` of Maskwise's allocations fails (0 is the next one); with `onwards`, all
// later ones fail, too. stop() ends it.
void fail(std::int64_t nth, bool onwards);
// Whether an allocation has failed since fail().
bool stop();

std::int64_t living(); // Maskwise's allocations since the first call of living() or fail()

} // namespace own_allocations
} // namespace maskwise::contract
