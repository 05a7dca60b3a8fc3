#pragma once

#include <cstddef>
#include <cstdint>

namespace maskwise::bench {

// One pass of a kernel without logic: reads `read_bytes` of `from` and writes `written_bytes` of
// `to`, evenly mixed, with plain or non-temporal stores, on `threads` threads.
struct limit_pass {
    const std::byte* from;
    std::byte* to;
    std::int64_t read_bytes;
    std::int64_t written_bytes;
};

void run_limit(const limit_pass& pass, bool stream, int threads);

} // namespace maskwise::bench
