#include "exec/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace maskwise {

int available_threads() {
    // At least two threads, so that ThreadSanitizer can find races on a machine with one core.
    return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 2U, 8U));
}

void parallel_run(std::int64_t chunks, chunk_fn body, const void* context) {
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
        for (std::int64_t chunk = next++; chunk < chunks; chunk = next++) body(context, chunk);
    };
    std::vector<std::jthread> helpers;
    for (int i = 1; i < available_threads() && i < chunks; ++i) helpers.emplace_back(work);
    work();
}

} // namespace maskwise
