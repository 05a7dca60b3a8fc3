// usage: transcript [SCENARIO...]. Runs all or the named scenarios in a child process. If oneDNN
// ends the process, a new child runs the remaining scenarios. One child per scenario would be
// slower, because each child would start a SYCL runtime.

#include "transcript.hpp"

#include "support/client/library_facts.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace maskwise::contract;

namespace {

// The child's current scenario, in shared memory.
std::size_t& progress() {
    static auto* const shared = static_cast<std::size_t*>(mmap(
        nullptr, sizeof(std::size_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    return *shared;
}

// Facts on which the entries of differences.txt may depend.
void note_facts(const transcript& out, const void*) {
    const auto& facts = library();
    out.note("minor", facts.minor);
    out.note("avx512", facts.avx512);
    out.note("bf16", facts.bf16);
    out.note("f16", facts.f16);
}

[[noreturn]] void run_in_child(const std::vector<scenario>& chosen) {
    // A message of an aborting library is not part of the transcript.
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);
    for (; progress() < chosen.size(); ++progress()) {
        const scenario& next = chosen[progress()];
        alarm(60);
        next.run(transcript(next.name), next.data);
    }
    std::fflush(stdout);
    _exit(0);
}

void run(const std::vector<scenario>& chosen) {
    for (progress() = 0; progress() < chosen.size(); ++progress()) {
        std::fflush(stdout);
        const pid_t child = fork();
        if (child == 0) run_in_child(chosen);
        int state = 0;
        waitpid(child, &state, 0);
        if (progress() == chosen.size()) break;
        const transcript ended(chosen[progress()].name);
        if (WIFSIGNALED(state)) ended.note("end", "process ended by a signal");
        if (WIFEXITED(state)) ended.note("end", WEXITSTATUS(state));
    }
}

} // namespace

int main(int argc, char** argv) {
    std::vector<scenario> all{{"facts", note_facts}};
    add_schema_scenarios(all);
    add_compile_scenarios(all);
    add_handle_scenarios(all);
    add_graph_scenarios(all);
    add_wrong_scenarios(all);
    add_attention_scenarios(all);
    std::vector<scenario> chosen;
    std::copy_if(all.begin(), all.end(), std::back_inserter(chosen),
                 [&](const scenario& candidate) {
                     return argc < 2 || std::any_of(argv + 1, argv + argc, [&](const char* name) {
                                return candidate.name == name;
                            });
                 });
    run(chosen);
    return 0;
}
