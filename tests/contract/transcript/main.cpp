// transcript [scenario...]: runs all scenarios, or those named, each in a process of its own, since
// oneDNN ends the process on some of them.

#include "transcript.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

using namespace maskwise::contract;

namespace {

[[noreturn]] void run_in_child(const scenario& chosen) {
    // What an aborting library prints about itself is not part of the transcript.
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);
    alarm(60);
    chosen.run(transcript(chosen.name), chosen.data);
    std::fflush(stdout);
    _exit(0);
}

void run(const scenario& chosen) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) run_in_child(chosen);
    int state = 0;
    waitpid(child, &state, 0);
    if (WIFSIGNALED(state)) transcript(chosen.name).note("end", "process ended by a signal");
    if (WIFEXITED(state) && WEXITSTATUS(state) != 0)
        transcript(chosen.name).note("end", WEXITSTATUS(state));
}

} // namespace

int main(int argc, char** argv) {
    std::vector<scenario> all;
    add_schema_scenarios(all);
    add_compile_scenarios(all);
    add_handle_scenarios(all);
    add_graph_scenarios(all);
    for (const scenario& candidate : all) {
        const bool wanted = argc < 2 || std::any_of(argv + 1, argv + argc, [&](const char* name) {
                                return candidate.name == name;
                            });
        if (wanted) run(candidate);
    }
    return 0;
}
