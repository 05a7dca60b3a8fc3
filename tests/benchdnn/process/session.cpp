#include "process/modes.hpp"

#include "client/runner.hpp"
#include "model/graph.hpp"
#include "process/worker.hpp"
#include "report/reporter.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace maskwise::bench {
namespace {

char note[4096]; // a signal handler may not allocate

void print(const char* text) {
    [[maybe_unused]] const auto ignored = write(STDERR_FILENO, text, std::strlen(text));
}

void say_and_die(int signal) {
    print("maskwise-bench: the process crashed in (go on after crashes with --isolate):\n");
    print(note);
    print("\n");
    std::signal(signal, SIG_DFL);
    raise(signal);
}

// Installs handlers that report the current test before a crash ends the process. Called before
// each test, because runtimes that start late install their own handlers.
void note_test(const std::string& repro) {
    const std::size_t length = std::min(repro.size(), sizeof note - 1);
    std::copy_n(repro.data(), length, note);
    note[length] = '\0';
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
        std::signal(signal, say_and_die);
}

// The destination of a run's cases.
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
        if (!asked.list_only && !line_.run.isolate) {
            test::cpu_stream(); // a runtime that starts with it installs its handlers now
            note_test(repro_line(config));
        }
        report_.take(config, run_or_skip(asked));
        asked_library_ = asked_library_ || !asked.list_only;
    }

    int finish() {
        if (!asked_library_) return report_.finish("no library was asked");
        return report_.finish(line_.run.isolate ? isolated_.library() : library_description());
    }

private:
    // A case of a batch that cannot be read is listed with the reason, and the batch continues.
    case_result run_or_skip(const case_config& config) {
        try {
            return line_.run.isolate ? isolated_.run(config) : here_.run(config);
        } catch (const input_error& error) {
            if (!config.is_of_batch) throw;
            case_result unread;
            unread.state = verdict::skipped;
            unread.reason = error.what();
            return unread;
        }
    }

    const command_line& line_;
    reporter report_;
    runner here_;
    worker isolated_;
    bool asked_library_ = false;
};

} // namespace

int run_session(const command_line& line) {
    session all(line);
    for (int round = 0; round < line.run.rounds; ++round)
        for (const case_config& config : line.cases) all.run(config);
    return all.finish();
}

} // namespace maskwise::bench
