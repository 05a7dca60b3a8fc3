#include "common/serve.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>

namespace maskwise::bench {
namespace {

using clock = std::chrono::steady_clock;

// Approximate length of a sample. In shorter samples, the clock's error would be visible.
constexpr double sample_seconds = 100e-6;
constexpr double slow_seconds = 0.1;

double seconds_since(clock::time_point begin) {
    return std::chrono::duration<double>(clock::now() - begin).count();
}

std::int64_t calls_of_sample(double seconds_of_call) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(sample_seconds / seconds_of_call));
}

double time_calls(const std::function<void()>& call, const std::function<void()>& wait,
                  std::int64_t calls) {
    const auto begin = clock::now();
    for (std::int64_t i = 0; i < calls; ++i) call();
    wait();
    return seconds_since(begin) / static_cast<double>(calls);
}

} // namespace

int serve(const std::function<json(const json&)>& answer) {
    FILE* const out = fdopen(dup(STDOUT_FILENO), "w");
    dup2(STDERR_FILENO, STDOUT_FILENO);
    for (std::string line; std::getline(std::cin, line);) {
        json reply;
        try {
            reply = answer(json::parse(line));
        } catch (const std::exception& error) {
            reply = {{"error", error.what()}};
        }
        std::fputs((reply.dump() + "\n").c_str(), out);
        std::fflush(out);
    }
    std::fclose(out);
    return 0;
}

std::vector<double> take_samples(const std::function<void()>& call,
                                 const std::function<void()>& wait, int samples, double max_seconds,
                                 double warm) {
    const auto begin = clock::now();
    double latest = time_calls(call, wait, 1);
    if (latest > (warm < warm_seconds ? warm : slow_seconds)) return {latest};
    while (seconds_since(begin) < warm) latest = time_calls(call, wait, calls_of_sample(latest));
    const std::int64_t calls = calls_of_sample(latest);
    const auto counted = clock::now();
    std::vector<double> taken;
    while (static_cast<int>(taken.size()) < samples) {
        taken.push_back(time_calls(call, wait, calls));
        if (seconds_since(counted) > max_seconds) break;
    }
    return taken;
}

int processor_count() {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

std::int64_t peak_resident_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::int64_t{usage.ru_maxrss} * 1024;
}

} // namespace maskwise::bench
