// bench_limit: measures the fastest way to move the bytes of a case.
//   {"do": "hello"}  returns the version, the threads, and the name and threads of each way
//   {"do": "bind", "read", "written"}  sets the numbers of bytes to read and to write
//   {"do": "time", "ways": [number...], "passes", "samples", "max_seconds", "warm"}
//          returns the samples in seconds, for each requested way and pass

#include "common/memory.hpp"
#include "common/serve.hpp"
#include "limit/limit_kernel.hpp"

#include <algorithm>
#include <functional>
#include <random>

namespace maskwise::bench {
namespace {

bool uses_all(const limit_variant& way) {
    return way.sharing != limit_sharing::one_thread;
}

class limit {
public:
    json answer(const json& request) {
        const std::string request_name = request.at("do");
        if (request_name == "hello") return hello();
        if (request_name == "bind") return bind(request.at("read"), request.at("written"));
        if (request_name == "time") return time(request);
        throw std::invalid_argument("unknown request '" + request_name + "'");
    }

private:
    json hello() const {
        json ways = json::array();
        for (const limit_variant& way : ways_)
            ways.push_back({{"name", to_string(way)}, {"threads", uses_all(way) ? threads_ : 1}});
        return {{"version", "2"}, {"threads", threads_}, {"ways", ways}};
    }

    json bind(std::int64_t read, std::int64_t written) {
        pass_ = {take_source(read + limit_slack_bytes), to_.take(written), read, written};
        return {{"read", read}, {"written", written}};
    }

    // Random values, because zeros would be written faster than a case's values.
    const std::byte* take_source(std::int64_t bytes) {
        std::byte* const from = from_.take(bytes);
        auto* const words = reinterpret_cast<std::uint64_t*>(from);
        std::mt19937_64 random(1);
        if (bytes > filled_) std::generate(words, words + bytes / 8, std::ref(random));
        filled_ = std::max(filled_, bytes);
        return from;
    }

    // A pass runs all requested ways, so that a slow phase of the memory affects all. Every second
    // pass runs in reverse order.
    json time(const json& request) {
        const std::vector<std::size_t> ways = request.at("ways");
        json taken(ways.size(), json::array());
        bool awake = false; // whether the previous way ran on all threads, so that none sleeps
        for (int pass = 0; pass < request.at("passes"); ++pass)
            for (std::size_t step = 0; step < ways.size(); ++step) {
                const std::size_t i = pass % 2 == 0 ? step : ways.size() - 1 - step;
                taken[i].push_back(sample(ways_[ways.at(i)], request, awake));
                awake = uses_all(ways_[ways.at(i)]);
            }
        return {{"taken", taken}};
    }

    std::vector<double> sample(const limit_variant& way, const json& request, bool awake) {
        const double warm = request.at("warm");
        return take_samples([&] { run_limit(pass_, way, threads_); }, [] {}, request.at("samples"),
                            request.at("max_seconds"),
                            uses_all(way) && !awake ? std::max(warm, warm_seconds) : warm);
    }

    int threads_ = processor_count();
    std::span<const limit_variant> ways_ = limit_variants(threads_);
    arena from_, to_;
    std::int64_t filled_ = 0; // bytes of from_ with random values
    limit_pass pass_{};
};

} // namespace
} // namespace maskwise::bench

int main() {
    maskwise::bench::limit l;
    return maskwise::bench::serve([&l](const auto& request) { return l.answer(request); });
}
