#include "process/session.hpp"

#include "client/runner.hpp"
#include "model/graph.hpp"
#include "process/crash_note.hpp"
#include "process/worker.hpp"
#include "report/reporter.hpp"

#include "maskwise/maskwise.hpp"

#include <fmt/format.h>

namespace maskwise::bench {
namespace {

// Where the cases of one run go.
class session {
public:
    explicit session(const command_line& line)
        : line_(line),
          report_(line.run, line.cases.size() * static_cast<std::size_t>(line.run.rounds)),
          here_(line.run.verbose), isolated_(line.run.verbose) {}

    void run(const case_config& config) {
        report_.start(config);
        case_config asked = config;
        asked.list_only = config.list_only || line_.run.list;
        const bool is_graph = config.dialect == "onednn";
        if (!asked.list_only && !line_.run.isolate) {
            if (is_graph) here_.loaded(); // a runtime that starts with it installs its handlers now
            note_test(repro_line(config));
        }
        const case_result result = line_.run.isolate ? isolated_.run(asked) : here_.run(asked);
        report_.take(config, result);
        needs_library_ = needs_library_ || (is_graph && !asked.list_only);
        needs_engine_ = needs_engine_ || (!is_graph && !asked.list_only);
    }

    int finish() {
        if (!needs_library_)
            return report_.finish(needs_engine_ ? fmt::format("Maskwise {}", version())
                                                : "no library was asked");
        return report_.finish(line_.run.isolate ? isolated_.library()
                                                : here_.loaded().description());
    }

private:
    const command_line& line_;
    reporter report_;
    runner here_;
    worker isolated_;
    bool needs_library_ = false, needs_engine_ = false;
};

} // namespace

int run_session(const command_line& line) {
    session all(line);
    for (int round = 0; round < line.run.rounds; ++round)
        for (const case_config& config : line.cases) all.run(config);
    return all.finish();
}

} // namespace maskwise::bench
