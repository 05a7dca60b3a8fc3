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

char note[4096]; // a fixed size, because a signal handler must not allocate

void print(const char* text) {
    [[maybe_unused]] const auto ignored = write(STDERR_FILENO, text, std::strlen(text));
}

void report_and_die(int signal) {
    print("maskwise-bench: this test crashed the process (--isolate continues after a crash):\n");
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
        std::signal(signal, report_and_die);
}

// Runs and reports the cases of one command line, in this process or in a worker (--isolate).
class session {
public:
    explicit session(const command_line& line)
        : line_(line),
          report_(line.run, line.cases.size() * static_cast<std::size_t>(line.run.rounds)),
          in_process_(line.run.verbose), isolated_(line.run.verbose) {}

    void run(const case_config& config) {
        report_.start(config);
        case_config used = config;
        used.list_only = config.list_only || line_.run.list;
        if (!used.list_only && !line_.run.isolate) {
            test::cpu_stream(); // a runtime that starts with the stream installs its handlers now
            note_test(repro_line(config));
        }
        report_.add(config, run_or_skip(used));
        used_library_ = used_library_ || !used.list_only;
    }

    int finish() {
        if (!used_library_) return report_.finish("no library was used");
        return report_.finish(line_.run.isolate ? isolated_.library() : library_description());
    }

private:
    // Skips a case of a batch that cannot be read, and reports the reason.
    case_result run_or_skip(const case_config& config) {
        try {
            return line_.run.isolate ? isolated_.run(config) : in_process_.run(config);
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
    runner in_process_;
    worker isolated_;
    bool used_library_ = false;
};

} // namespace

int run_session(const command_line& line) {
    session runs(line);
    for (int round = 0; round < line.run.rounds; ++round)
        for (const case_config& config : line.cases) runs.run(config);
    return runs.finish();
}

} // namespace maskwise::bench
