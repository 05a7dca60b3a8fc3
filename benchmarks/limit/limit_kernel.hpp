#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace maskwise::bench {

// The bytes that a case must move: one contiguous buffer to read and one to write. Both buffers are
// aligned to 64 bytes. Byte counts are multiples of 64 and may be 0. limit_slack_bytes past the end
// of `from` must be readable. Fill `from` with random bytes: written lines depend on these bytes,
// and some CPUs write cache lines of zeros faster.
struct limit_pass {
    const std::byte* from;
    std::byte* to;
    std::int64_t read_bytes;
    std::int64_t written_bytes;
};
inline constexpr std::int64_t limit_slack_bytes = 4096;

// How threads share the cache lines.
enum class limit_sharing {
    one_thread,
    parts, // oneTBB distributes a few parts per thread
    // threads take blocks of about 64 KiB of `to` in order, so all threads work in one region of
    // memory
    blocks,
    own_lines // each thread has the same part in each call, so the part stays in the core's cache
};

// A way to move the bytes. The fastest way depends on the mix of reads and writes, and on the cache
// that holds the working set. So the limit is the time of the fastest way.
struct limit_variant {
    limit_sharing sharing;
    bool stream;              // streaming stores
    std::int64_t piece_bytes; // bytes written between two groups of reads
    std::int64_t ahead_bytes; // distance of software prefetches; 0: none
    // Number of equal slices of `from`. Each group of reads takes some lines of every slice, to
    // imitate a case with several operands.
    int places;
};

// Returns all variants. With one thread, returns only the variants that use one thread.
std::span<const limit_variant> limit_variants(int threads);
std::string to_string(const limit_variant& variant);

// Writes every cache line of `to` and interleaves reads of `from` evenly. Uses this machine's
// widest vectors. If `places` does not divide the number of lines of `from`, the remaining lines
// are not read. Reads nothing if `to` is empty.
void run_limit(const limit_pass& pass, const limit_variant& variant, int threads);

} // namespace maskwise::bench
