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

// Who moves which lines.
enum class limit_sharing {
    one_thread,
    parts,    // of all threads, a few each, as they come to them
    blocks,   // of 64 KB, one after another, so that all threads work at one place of the memory
    own_lines // one part a thread, from call to call the same: they stay in its core's cache
};

// One way to move them. Which one is the best depends on the mix and on the cache that holds the
// working set, so all are tried and the best counts.
struct limit_variant {
    limit_sharing sharing;
    bool stream;              // stores past the caches
    std::int64_t piece_bytes; // written between two changes from writing to reading
    std::int64_t ahead_bytes; // how far ahead reads are prefetched; 0: left to the hardware
    int places;               // how many places are read in turns, as a case reads its operands
};

// Those that differ where there are that many threads.
std::span<const limit_variant> limit_variants(int threads);
std::string to_string(const limit_variant& variant);

// Writes every line of `to` and, where there are any, reads every line of `from`, evenly mixed,
// without any logic, by the widest vectors of this machine. Lines that the places do not share out
// evenly are not read: fewer than there are places. What is written depends on every line read.
void run_limit(const limit_pass& pass, const limit_variant& variant, int threads);

} // namespace maskwise::bench
