#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace maskwise::test {

// Bytes of the cache lines into which `call` stores, of the `bytes` at `data`, the start of a page.
// A store that changes nothing counts as well, and one that straddles two lines counts for the
// first. `call` must store on the calling thread only: of another thread's stores some would be
// missed. Takes some microseconds a store. Throws std::system_error where the memory cannot be
// protected.
std::int64_t written_bytes(std::byte* data, std::int64_t bytes, const std::function<void()>& call);

} // namespace maskwise::test
