#pragma once

#include "maskwise/maskwise.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace maskwise::test {

// A caller's loop that runs each iteration on a new thread. Adds the iteration count to `calls`.
inline parallel_loop loop_of(int threads, std::atomic<std::int64_t>* calls = nullptr) {
    return {threads, [=](std::int64_t count, const std::function<void(std::int64_t)>& body) {
                if (calls != nullptr) *calls += count;
                std::vector<std::jthread> workers;
                for (std::int64_t i = 0; i < count; ++i)
                    workers.emplace_back([&body, i] { body(i); });
            }};
}

} // namespace maskwise::test
