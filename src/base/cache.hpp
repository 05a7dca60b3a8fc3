#pragma once

#include "base/cpu.hpp"

#include <cstdint>

namespace maskwise {

// Sizes of the data caches that one core can use.
struct cache_facts {
    std::int64_t l1_bytes;
    std::int64_t l1_ways; // cache lines per set
    std::int64_t l2_bytes;
    std::int64_t last_level_bytes; // this core's share, clamped to a plausible range
};

// Reads CPUID leaf 4 or 0x8000001D, and clamps the sizes to plausible ranges. Without these leaves,
// for example on Arm, the sizes are defaults.
cache_facts read_caches(const cpu_reader& cpu);

// The caches of this machine, read at the first call.
const cache_facts& native_caches();

// A plan may use streaming stores only if the plan moves at least this many bytes. The bound is
// MASKWISE_STREAM_BYTES if set, else 6 * last_level_bytes, and is read at the first call. Throws
// argument_error if the variable is negative or not a number.
std::int64_t stream_threshold_bytes();

} // namespace maskwise
