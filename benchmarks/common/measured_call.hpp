#pragma once

#include "common/bench_case.hpp"
#include "common/memory.hpp"

#include <array>
#include <memory>

namespace maskwise::bench {

// A Select, run by the implementation that this process measures.
class timed_call {
public:
    timed_call() = default;
    virtual ~timed_call() = default;
    timed_call(const timed_call&) = delete;
    timed_call& operator=(const timed_call&) = delete;

    virtual void bind(const std::array<void*, 4>& buffers) = 0; // cond, src_0, src_1, dst
    virtual void execute() = 0;                                 // may return before dst is written
    virtual void wait() {}                                      // until all executions have ended
};

// Answers the requests "load" and "time" of scripts/bench.
class measured_call {
public:
    // Runs the call once on the case's data and compares dst with the file `expected`. Returns
    // {"state": "right"} or {"state": "wrong"}.
    // Passes on the call's exceptions. Throws std::runtime_error if a file cannot be read or there
    // is not enough memory.
    json load(const bench_case& c, std::unique_ptr<timed_call> call);
    // Returns {"samples": seconds}. Throws std::invalid_argument if no case is loaded.
    json time(const json& request);

private:
    std::byte* read(const std::string& name, const bench_case& c, std::int64_t bytes,
                    std::size_t buffer);

    std::array<arena, 4> buffers_;
    std::unique_ptr<timed_call> call_;
};

} // namespace maskwise::bench
