#pragma once

#include "base/cpu.hpp"

#include <cstdint>

namespace maskwise {

// Data cache sizes as one core can count on them.
struct cache_facts {
    std::int64_t l1_bytes;
    std::int64_t l1_ways; // lines of one set
    std::int64_t l2_bytes;
    std::int64_t last_level_bytes; // this core's share, clamped to a plausible range
};

// Asks CPUID (leaf 4 or 0x8000001D) and clamps: virtual machines report the last-level cache of the
// whole socket for a few cores, which overstated the usable share ten times where measured.
cache_facts read_caches(const cpu_reader& cpu);

// This machine's, asked for at the first call.
const cache_facts& native_caches();

// Bytes moved, all operands together, from which plans store past the caches:
// MASKWISE_STREAM_BYTES, or what the caches suggest. Decided at the first call. Throws
// argument_error on a value that is not a number.
std::int64_t stream_threshold_bytes();

} // namespace maskwise
