// Counts the plugin's instructions in one execution of a partition that oneDNN compiled. A tracer
// single-steps the process from one SIGSTOP to the next and counts the steps inside the plugin. So
// the result is exact even on a busy machine.

#include "support/client/graph_client.hpp"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

constexpr long most_allowed = 150;
constexpr int skipped = 77;

using namespace maskwise::test;

// A ReLU partition, compiled once and executed repeatedly on the same tensors.
struct relu {
    node spec{1, dnnl_graph_op_relu, {dense(0, dnnl_f32, {4})}, {dense(1, dnnl_f32, {4})}};
    std::vector<owned_partition> partitions = partitions_of(build({spec}).get());
    owned_compiled compiled = compile(partitions.at(0).get(), spec.inputs, spec.outputs);
    memory bytes;
    bound_tensors in{spec.inputs, bytes}, out{spec.outputs, bytes};

    dnnl_status_t execute() {
        return dnnl_graph_compiled_partition_execute(compiled.get(), cpu_stream(), 1, in.data(), 1,
                                                     out.data());
    }
};

[[noreturn]] void be_traced() {
    relu work;
    for (int i = 0; i < 5; ++i) // binds symbols, fills caches
        if (work.execute() != dnnl_success) _exit(2);
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(skipped);
    raise(SIGSTOP);
    work.execute();
    raise(SIGSTOP);
    _exit(0);
}

using ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

ranges code_of_plugin(pid_t process) {
    std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
    ranges result;
    for (std::string line; std::getline(maps, line);) {
        if (line.find("libmaskwise_onednn") == std::string::npos ||
            line.find("r-xp") == std::string::npos)
            continue;
        std::size_t end = 0;
        const auto from = std::stoull(line, &end, 16);
        result.emplace_back(from, std::stoull(line.substr(end + 1), nullptr, 16));
    }
    return result;
}

bool contains(const ranges& code, std::uint64_t address) {
    for (const auto& [from, to] : code)
        if (address >= from && address < to) return true;
    return false;
}

struct counts {
    long total = 0, in_plugin = 0;
};

// Counts steps until the second SIGSTOP or the end of the process.
counts count_steps(pid_t process, const ranges& code) {
    counts seen;
    int state = 0;
    while (ptrace(PTRACE_SINGLESTEP, process, nullptr, nullptr) == 0 &&
           waitpid(process, &state, 0) == process && WIFSTOPPED(state) &&
           WSTOPSIG(state) == SIGTRAP) {
        user_regs_struct registers{};
        ptrace(PTRACE_GETREGS, process, nullptr, &registers);
        ++seen.total;
        if (contains(code, registers.rip)) ++seen.in_plugin;
    }
    return seen;
}

} // namespace

int main() {
    const pid_t process = fork();
    if (process == 0) be_traced();
    int state = 0;
    waitpid(process, &state, 0);
    if (!WIFSTOPPED(state)) {
        std::printf("not traced: exit status %d\n", WEXITSTATUS(state));
        return WEXITSTATUS(state);
    }
    const auto code = code_of_plugin(process);
    const counts seen = count_steps(process, code);
    kill(process, SIGKILL);
    waitpid(process, &state, 0);
    std::printf(
        "an execution by oneDNN has %ld instructions, %ld of them in the plugin (at most %ld)\n",
        seen.total, seen.in_plugin, most_allowed);
    return !code.empty() && seen.in_plugin > 0 && seen.in_plugin <= most_allowed ? 0 : 1;
}
