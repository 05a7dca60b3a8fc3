#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace maskwise::bench {

// What a case must move, as one contiguous buffer to read and one to write. Both are aligned to
// pages; counts of bytes are multiples of 64 and may be 0. The memory to read must hold at least
// limit_slack_bytes more than read_bytes, and values as a case has them: where all of it is zero,
// so is what is written, and some machines write lines of zeros more than twice as fast.
struct limit_pass {
    const std::byte* from;
    std::byte* to;
    std::int64_t read_bytes;
    std::int64_t written_bytes;
};
inline constexpr std::int64_t limit_slack_bytes = 4096;

// One way to move them. Which one is the best depends on the mix and on the cache that holds the
// working set, so all are tried and the best counts.
struct limit_variant {
    bool stream;              // stores past the caches
    bool all_threads;         // else one
    std::int64_t piece_bytes; // written between two changes from writing to reading
    std::int64_t ahead_bytes; // how far ahead reads are prefetched; 0: left to the hardware
    int places;               // how many places are read in turns, as a case reads its operands
};

std::span<const limit_variant> limit_variants();
std::string to_string(const limit_variant& variant);

// Reads every byte of `from` and writes every byte of `to`, evenly mixed, without any logic, by the
// widest vectors of this machine.
void run_limit(const limit_pass& pass, const limit_variant& variant, int threads);

} // namespace maskwise::bench
