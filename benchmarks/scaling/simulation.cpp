#include "scaling/simulation.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <queue>

namespace maskwise::bench {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point begin) {
    return std::chrono::duration<double>(clock::now() - begin).count();
}

class stopwatch : public work_watcher {
public:
    void begin_phase() override {
        phases.emplace_back();
        last_ = clock::now();
    }
    void end_item() override {
        const clock::time_point now = clock::now();
        phases.back().push_back(std::chrono::duration<double>(now - last_).count());
        last_ = now;
    }

    std::vector<std::vector<double>> phases;

private:
    clock::time_point last_;
};

double sum_of(const std::vector<double>& items) {
    return std::accumulate(items.begin(), items.end(), 0.0);
}

// The other workers would find no item.
recorded record_once(attention_problem& problem, int workers) {
    const parallel_loop loop{workers, [](std::int64_t, const auto& body) { body(0); }};
    stopwatch watch;
    const clock::time_point begin = clock::now();
    problem.execute(&loop, &watch);
    recorded made{std::move(watch.phases), seconds_since(begin)};
    for (const auto& items : made.phases) made.serial -= sum_of(items);
    return made;
}

void keep_least(double& kept, double other) {
    kept = std::min(kept, other);
}

} // namespace

double recorded::sum() const {
    double all = serial;
    for (const auto& items : phases) all += sum_of(items);
    return all;
}

double recorded::simulate(int workers) const {
    double end = serial;
    for (const auto& items : phases) {
        std::priority_queue<double, std::vector<double>, std::greater<>> idle_from;
        for (int i = 0; i < workers; ++i) idle_from.push(0);
        double last = 0;
        for (const double item : items) {
            const double done = idle_from.top() + item;
            idle_from.pop();
            idle_from.push(done);
            last = std::max(last, done);
        }
        end += last;
    }
    return end;
}

recorded record(attention_problem& problem, int workers, int turns) {
    record_once(problem, workers);
    recorded least = record_once(problem, workers);
    for (int turn = 1; turn < turns; ++turn) {
        const recorded next = record_once(problem, workers);
        keep_least(least.serial, next.serial);
        for (std::size_t phase = 0; phase < least.phases.size(); ++phase)
            for (std::size_t item = 0; item < least.phases[phase].size(); ++item)
                keep_least(least.phases[phase][item], next.phases[phase][item]);
    }
    return least;
}

} // namespace maskwise::bench
