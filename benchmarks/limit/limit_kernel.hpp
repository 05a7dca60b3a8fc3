#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace maskwise::bench {

// The bytes that a case must move, as one contiguous buffer to read and one to write. Both are page
// aligned; byte counts are multiples of 64 and may be 0. The memory to read must have at least
// limit_slack_bytes more than read_bytes, and typical values of a case: with zeros only, zeros are
// written, and some machines write lines of zeros more than twice as fast.
struct limit_pass {
    const std::byte* from;
    std::byte* to;
    std::int64_t read_bytes;
    std::int64_t written_bytes;
};
inline constexpr std::int64_t limit_slack_bytes = 4096;

// How threads share the lines.
enum class limit_sharing {
    one_thread,
    parts,    // threads take a few pieces each, dynamically
    blocks,   // 64 KB pieces, one after another, so that all threads work in one region of memory
    own_lines // one part per thread, the same in each call, so it stays in its core's cache
};

// A way to move the bytes. The best way depends on the mix and on the cache that holds the working
// set, so all are tried and the fastest is the limit.
struct limit_variant {
    limit_sharing sharing;
    bool stream;              // streaming stores
    std::int64_t piece_bytes; // written between two changes from writing to reading
    std::int64_t ahead_bytes; // how far ahead reads are prefetched; 0: left to the hardware
    int places;               // places read in turns, as a case reads several operands
};

// The ways that differ for this thread count.
std::span<const limit_variant> limit_variants(int threads);
std::string to_string(const limit_variant& variant);

// Writes every line of `to` and reads every line of `from`, if any, evenly mixed, without logic,
// with the widest vectors of this machine. Leftover lines that streams do not share evenly are not
// read. Every written line depends on the lines read.
void run_limit(const limit_pass& pass, const limit_variant& variant, int threads);

} // namespace maskwise::bench
