// bench_limit: makes the data of each case, and measures how fast its bytes can move at all.
//   {"do": "hello"}                        version, threads
//   {"do": "load", "case": ...}            writes the case's files, answers the bytes that must
//   move
//   {"do": "time", "samples", "max_seconds", "best": n}
//          samples of each variant, or, with best > 0, of those n that were fastest so far
//   {"do": "copy", "bytes": n, "samples"}  a plain copy of n bytes, to compare with other tools

#include "common/memory.hpp"
#include "common/serve.hpp"
#include "limit/limit_kernel.hpp"
#include "limit/select_data.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace maskwise::bench {
namespace {

// Before the second and later ways of one request: the threads are awake.
constexpr double awake_seconds = 2e-3;

class limit {
public:
    json answer(const json& request) {
        const std::string what = request.at("do");
        if (what == "hello") return {{"version", "1"}, {"threads", threads_}};
        if (what == "load") return load(parse_case(request.at("case")));
        if (what == "time")
            return time(request.at("samples"), request.at("max_seconds"), request.at("best"));
        if (what == "copy") return copy(request.at("bytes"), request.at("samples"));
        throw std::invalid_argument("unknown request '" + what + "'");
    }

private:
    json load(const bench_case& c) {
        const needed_bytes needed = make_data(c);
        bind(needed.read, needed.written);
        return {{"state", "right"}, {"read", needed.read}, {"written", needed.written}};
    }

    void bind(std::int64_t read, std::int64_t written) {
        pass_ = {take_source(read + limit_slack_bytes), to_.take(written), read, written};
        fastest_.assign(limit_variants().size(), 1e9);
    }

    // Memory that holds random values; zeros would be written faster than a case's values.
    const std::byte* take_source(std::int64_t bytes) {
        std::byte* const from = from_.take(bytes);
        if (bytes > filled_) fill_values(from, bytes, "f32", 1);
        filled_ = std::max(filled_, bytes);
        return from;
    }

    json time(int samples, double max_seconds, std::size_t best) {
        json answer = json::array();
        for (const std::size_t i : candidates(best)) {
            const limit_variant& variant = limit_variants()[i];
            const std::vector<double> taken =
                take_samples([&] { run_limit(pass_, variant, threads_); }, [] {}, samples,
                             max_seconds, answer.empty() ? warm_seconds : awake_seconds);
            fastest_[i] = std::min(fastest_[i], *std::min_element(taken.begin(), taken.end()));
            answer.push_back({{"variant", to_string(variant)},
                              {"threads", variant.all_threads ? threads_ : 1},
                              {"samples", taken}});
        }
        return {{"variants", answer}};
    }

    std::vector<std::size_t> candidates(std::size_t best) const {
        std::vector<std::size_t> order(fastest_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        if (best == 0) return order;
        std::sort(order.begin(), order.end(),
                  [this](std::size_t a, std::size_t b) { return fastest_[a] < fastest_[b]; });
        order.resize(std::min(best, order.size()));
        return order;
    }

    json copy(std::int64_t bytes, int samples) {
        bind(bytes, bytes);
        return time(samples, 10, 0);
    }

    int threads_ = processor_count();
    arena from_, to_;
    std::int64_t filled_ = 0; // bytes of from_ that hold values
    limit_pass pass_{};
    std::vector<double> fastest_;
};

} // namespace
} // namespace maskwise::bench

int main() {
    maskwise::bench::limit l;
    return maskwise::bench::serve([&l](const auto& request) { return l.answer(request); });
}
