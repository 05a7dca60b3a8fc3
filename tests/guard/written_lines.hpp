#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace maskwise::test {

// Returns the bytes of the cache lines that `call` stores to, in all pages of [data, data + bytes).
// `data` must begin a page. A store counts even if it changes nothing. A store across two lines
// counts only the first line. `call` must store only on the calling thread. Each store costs two
// signals. Throws std::system_error if the memory cannot be protected.
std::int64_t written_bytes(std::byte* data, std::int64_t bytes, const std::function<void()>& call);

} // namespace maskwise::test
