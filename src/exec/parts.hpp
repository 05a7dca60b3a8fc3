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

// Calls work(part) for each of the parts, which are all done when this returns. `work` must not
// throw.
template <class Work>
void run_in_parts(std::int64_t parts, const Work& work) {
    if (parts == 1) return work(0);
    parallel_run(
        parts, [](const void* raw, std::int64_t part) { (*static_cast<const Work*>(raw))(part); },
        &work);
}

// Calls work(first, last) with the tiles of each part, which differ by one tile at most.
template <class Work>
void run_tiles_in_parts(std::int64_t tiles, std::int64_t parts, const Work& work) {
    const std::int64_t each = tiles / parts, rest = tiles % parts;
    run_in_parts(parts, [&](std::int64_t part) {
        const std::int64_t first = part * each + std::min(part, rest);
        work(first, first + each + (part < rest ? 1 : 0));
    });
}

} // namespace maskwise
