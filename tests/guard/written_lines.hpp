#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace maskwise::test {

// The bytes of the cache lines into which `call` stores, among `bytes` bytes at `data`, the start
// of a page. A store that changes nothing counts, too. A store that straddles two lines counts for
// the first. `call` must store on the calling thread only, or stores are missed. A store takes some
// microseconds. Throws std::system_error if the memory cannot be protected.
std::int64_t written_bytes(std::byte* data, std::int64_t bytes, const std::function<void()>& call);

} // namespace maskwise::test
