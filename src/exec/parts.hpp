#pragma once

#include "exec/parallel.hpp"
#include "maskwise/maskwise.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>

namespace maskwise {

// Work below these bounds runs on one thread, because waking another thread costs more than it
// saves.
inline constexpr std::int64_t parallel_from_bytes = 1 << 20; // bytes that a Select moves
inline constexpr std::int64_t parallel_from_row_elements = 64 << 10;
inline constexpr std::int64_t parallel_from_products = 1 << 19; // multiplications of attention
// Bounds for the loop of a host such as ONNX Runtime, whose idle threads mostly spin.
inline constexpr std::int64_t host_parallel_from_products = 1 << 16; // multiplications of attention
// Multiplications of ONNX Runtime's attention operators.
inline constexpr std::int64_t operator_parallel_from_products = 1 << 18;
inline constexpr std::int64_t host_parallel_from_bytes = 1 << 18; // copied bytes
// Copying this many strings takes longer than waking a thread.
inline constexpr std::int64_t strings_per_part = 2048;
// There are more parts than threads, so that other threads can take parts from a delayed thread.
inline constexpr std::int64_t parts_per_thread = 4;

inline void check_loop(const char* name, const parallel_loop& loop) {
    if (loop.threads >= 1 && loop.run) return;
    throw argument_error(std::string(name) + ": a loop of " + std::to_string(loop.threads) +
                         " threads" + (loop.run ? "" : " without a function"));
}

// A loop that runs on the calling thread alone.
inline parallel_loop calling_thread() {
    return {1, [](std::int64_t count, const std::function<void(std::int64_t)>& body) {
                for (std::int64_t i = 0; i < count; ++i) body(i);
            }};
}

// In all functions below, the threads are the loop's, or oneTBB's if `loop` is null.

// Returns into how many parts this execution splits a plan's tiles or rows. A process that only
// runs small plans never starts threads.
inline std::int64_t choose_parts(std::int64_t work, std::int64_t parallel_from, std::int64_t tiles,
                                 const parallel_loop* loop = nullptr) {
    if (work < parallel_from || tiles < 2) return 1;
    const int threads = loop == nullptr ? available_threads() : loop->threads;
    return threads < 2 ? 1 : std::min(tiles, threads * parts_per_thread);
}

// Calls work(part) for each part and returns when all calls are done. `work` must not throw.
// Exceptions of the loop pass through.
template <class Work>
void run_in_parts(std::int64_t parts, const Work& work, const parallel_loop* loop = nullptr) {
    if (parts == 1) return work(0);
    if (loop != nullptr) // a std::function of a reference does not allocate
        return loop->run(parts, std::function<void(std::int64_t)>(std::ref(work)));
    parallel_run(
        parts, [](const void* raw, std::int64_t part) { (*static_cast<const Work*>(raw))(part); },
        &work);
}

// Calls work(first, last) for the tiles of each part. Parts differ by at most one tile.
template <class Work>
void run_tiles_in_parts(std::int64_t tiles, std::int64_t parts, const Work& work,
                        const parallel_loop* loop = nullptr) {
    const std::int64_t each = tiles / parts, rest = tiles % parts;
    const auto run_part = [&](std::int64_t part) {
        const std::int64_t first = part * each + std::min(part, rest);
        work(first, first + each + (part < rest ? 1 : 0));
    };
    run_in_parts(parts, run_part, loop);
}

} // namespace maskwise
