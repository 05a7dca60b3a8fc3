#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace maskwise::bench {

// What a case must move, as one contiguous buffer to read and one to write. Both are aligned to
// pages; counts of bytes are multiples of 64 and may be 0.
struct limit_pass {
    const std::byte* from;
    std::byte* to;
    std::int64_t read_bytes;
    std::int64_t written_bytes;
};

// One way to move them. Which one is the best depends on the mix and on the cache that holds the
// working set, so all are tried and the best counts.
struct limit_variant {
    bool stream;              // stores past the caches
    bool all_threads;         // else one
    std::int64_t piece_bytes; // written between two changes from writing to reading
    std::int64_t ahead_bytes; // how far ahead reads are prefetched; 0: left to the hardware
};

std::span<const limit_variant> limit_variants();
std::string to_string(const limit_variant& variant);

// Reads every byte of `from` and writes every byte of `to`, evenly mixed, without any logic, by the
// widest vectors of this machine.
void run_limit(const limit_pass& pass, const limit_variant& variant, int threads);

} // namespace maskwise::bench
