#include "process/session.hpp"

#include "client/runner.hpp"
#include "client/timing.hpp"
#include "model/graph.hpp"
#include "process/crash_note.hpp"
#include "process/worker.hpp"
#include "report/reporter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace maskwise::bench {
namespace {

constexpr int turns = 7;

int samples_a_turn(const case_config& c) {
    return c.fix_times_per_prb > 0 ? std::max(1, c.fix_times_per_prb / turns) : 5;
}

// Measures here and in the child without Maskwise by turns, so that a change of the machine's
// clock or load meets both.
void measure_in_turns(runner& here, worker& other, const case_config& config, case_result& result) {
    case_config timed = config;
    timed.correctness = false;
    timed.performance = true;
    timed.owner.clear();
    timed.expect.clear();
    timed.expected_n_partitions = 0;
    timed.fix_times_per_prb = 1;
    const case_result alone = other.run(timed);
    if (!alone.perf) {
        result.onednn_state = verdict_word(alone.state);
        return;
    }
    const double budget = config.max_ms_per_prb / turns;
    std::vector<double> mine;
    std::vector<double> theirs;
    for (int i = 0; i < turns; ++i) {
        for (const double ms : other.time_again(samples_a_turn(config), budget))
            theirs.push_back(ms);
        for (const double ms : here.time_again(samples_a_turn(config), budget)) mine.push_back(ms);
    }
    if (theirs.empty()) {
        result.onednn_state = verdict_word(verdict::aborted);
        return;
    }
    result.perf = summarize(mine, result.perf->bytes);
    result.perf_onednn = summarize(theirs, result.perf->bytes);
}

// Where the cases of one run go.
class session {
public:
    explicit session(const command_line& line)
        : line_(line),
          report_(line.run, line.cases.size() * static_cast<std::size_t>(line.run.rounds)),
          here_(line.run.verbose), isolated_(worker::with::maskwise_as_here, line.run.verbose),
          alone_(worker::with::no_maskwise, line.run.verbose) {}

    void run(const case_config& config) {
        report_.start(config);
        case_config asked = config;
        asked.list_only = config.list_only || line_.run.list;
        if (!asked.list_only && !line_.run.isolate) {
            here_.loaded(); // a runtime that starts with it installs its handlers now
            note_test(repro_line(config));
        }
        case_result result = line_.run.isolate ? isolated_.run(asked) : here_.run(asked);
        if (line_.run.vs_onednn && !line_.run.isolate && result.perf)
            measure_in_turns(here_, alone_, config, result);
        report_.take(config, result);
        needs_library_ = needs_library_ || !asked.list_only;
    }

    int finish() {
        if (!needs_library_) return report_.finish("no library was asked");
        return report_.finish(line_.run.isolate ? isolated_.library()
                                                : here_.loaded().description());
    }

private:
    const command_line& line_;
    reporter report_;
    runner here_;
    worker isolated_, alone_;
    bool needs_library_ = false;
};

} // namespace

int run_session(const command_line& line) {
    session all(line);
    for (int round = 0; round < line.run.rounds; ++round)
        for (const case_config& config : line.cases) all.run(config);
    return all.finish();
}

} // namespace maskwise::bench
