#pragma once

#include "base/cpu.hpp"

#include <cstdint>

namespace maskwise {

// Data cache sizes that one core can count on.
struct cache_facts {
    std::int64_t l1_bytes;
    std::int64_t l1_ways; // lines of one set
    std::int64_t l2_bytes;
    std::int64_t last_level_bytes; // this core's share, clamped to a plausible range
};

// Reads CPUID leaf 4 or 0x8000001D and clamps: a virtual machine with a few cores reports the
// last-level cache of the whole socket, in one case ten times the usable share.
cache_facts read_caches(const cpu_reader& cpu);

// The caches of this machine, read at the first call.
const cache_facts& native_caches();

// Plans that move at least this many bytes, over all operands, use streaming stores:
// MASKWISE_STREAM_BYTES, or a multiple of the last-level cache. Decided at the first call. Throws
// argument_error if the variable is not a number.
std::int64_t stream_threshold_bytes();

} // namespace maskwise
