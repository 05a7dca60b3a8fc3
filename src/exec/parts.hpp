#pragma once

#include "exec/parallel.hpp"

#include <algorithm>
#include <cstdint>

namespace maskwise {

// Below this, waking another thread costs more than it takes off.
inline constexpr std::int64_t parallel_from_bytes = 1 << 20;
// More parts than threads, so that one delayed thread does not delay all.
inline constexpr std::int64_t parts_per_thread = 4;

// In how many parts the tiles of one plan are run here and now.
inline std::int64_t choose_parts(std::int64_t moved_bytes, std::int64_t tiles) {
    if (moved_bytes < parallel_from_bytes || tiles < 2) return 1;
    const int threads = available_threads();
    return threads < 2 ? 1 : std::min(tiles, threads * parts_per_thread);
}

struct tile_range {
    std::int64_t first, last;
};

// All parts of one call, on the caller's thread where there is one.
inline void run_parts(std::int64_t parts, chunk_fn run, const void* context) {
    if (parts == 1)
        run(context, 0);
    else
        parallel_run(parts, run, context);
}

// The tiles of one part; parts differ by one tile at most.
inline tile_range tiles_of_part(std::int64_t tiles, std::int64_t part, std::int64_t parts) {
    const std::int64_t each = tiles / parts, rest = tiles % parts;
    const std::int64_t first = part * each + std::min(part, rest);
    return {first, first + each + (part < rest ? 1 : 0)};
}

} // namespace maskwise
