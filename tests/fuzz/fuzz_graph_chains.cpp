// Fuzzes graphs with a Select. In some graphs, the plugin merges operators. In others, oneDNN's
// partition has a MatMul, and Maskwise runs only rows or Selects of this partition (a composite).
// Shapes and layouts at compile may differ from those at add_op. The plugin must accept every graph
// that oneDNN alone accepts. Results must agree within bounds that follow from the operators,
// unless oneDNN alone is wrong.
//
// usage: fuzz_graph_chains INPUTS SEED [FILE...]
// Inputs run in a child process. An input that ends the child must also end the program without the
// plugin (this program's path with "_alone" appended). Another child then continues.

#include "graph_abi/api.hpp"
#include "graph_abi/chain_check.hpp"
#include "random_input.hpp"

#include "support/client/library_facts.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <span>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace maskwise::fuzz {
namespace {

constexpr unsigned seconds_an_input = 120;
constexpr int not_begun = 127;
constexpr double most_ends = 0.01; // share of the graphs; oneDNN 3.12.1 crashes on 0.3 to 0.6 %

struct program {
    std::vector<std::string> command; // the original command, including the loader's arguments
    std::size_t first_argument = 0;   // index of the program's first argument
    std::vector<const char*> files;
    unsigned long long count = 0, seed = 0;

    unsigned long long inputs() const { return files.size() + count; }

    std::vector<std::uint8_t> input(unsigned long long number) const {
        return number < files.size() ? input_of_file(files[number])
                                     : input_of_seed(seed + number - files.size());
    }

    // The arguments that run this input alone.
    std::vector<std::string> arguments_of(unsigned long long number) const {
        if (number < files.size()) return {"0", "0", files[number]};
        return {"1", std::to_string(seed + number - files.size())};
    }
};

program read_program(int argc, char** argv) {
    program options;
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    for (std::string each; std::getline(file, each, '\0');) options.command.push_back(each);
    options.first_argument = options.command.size() - static_cast<std::size_t>(argc) + 1;
    options.count = std::strtoull(argv[1], nullptr, 10);
    options.seed = std::strtoull(argv[2], nullptr, 10);
    options.files.assign(argv + 3, argv + argc);
    return options;
}

// Shared by the children and their parent.
struct progress {
    tally counted;
    unsigned long long next = 0;
    volatile bool is_alone = false;
    long ends = 0; // graphs on which oneDNN alone ends the process, too
};

void check(const std::vector<std::uint8_t>& input, progress& shared) {
    const std::span bytes(input);
    generator random(bytes), later(bytes.subspan(bytes.size() / 2));
    check_chain(random, later, shared.counted, shared.is_alone);
}

void run(const program& options, progress& shared) {
    for (; shared.next < options.inputs(); ++shared.next) {
        alarm(seconds_an_input);
        check(options.input(shared.next), shared);
    }
}

int wait_for(pid_t child) {
    int state = 0;
    waitpid(child, &state, 0);
    return state;
}

// Whether oneDNN without the plugin ends a process on this input. Starts a fresh process, because
// an earlier graph may have damaged the heap.
bool ends_alone(const program& options, unsigned long long number) {
    auto command = options.command;
    command.resize(options.first_argument);
    command.back() += "_alone";
    for (const auto& each : options.arguments_of(number)) command.push_back(each);
    std::vector<char*> arguments;
    for (auto& each : command) arguments.push_back(each.data());
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        if (std::freopen("/dev/null", "w", stderr) != nullptr)
            execv(arguments[0], arguments.data());
        _exit(not_begun);
    }
    const int state = wait_for(child);
    if (WIFEXITED(state) && WEXITSTATUS(state) == not_begun)
        fail("'" + command[options.first_argument - 1] + "' cannot be run");
    return !WIFEXITED(state) || WEXITSTATUS(state) != 0; // sanitizers exit with an error status
}

std::string text_of(const std::vector<std::string>& words) {
    std::string text;
    for (const auto& word : words) text += ' ' + word;
    return text;
}

// Runs the remaining inputs in a child. Returns false if an input ends the child, but not the
// program without the plugin.
bool run_in_child(const program& options, progress& shared) {
    const pid_t child = fork();
    if (child == 0) {
        run(options, shared);
        _exit(0);
    }
    const int state = wait_for(child);
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return true;
    const std::string arguments = text_of(options.arguments_of(shared.next));
    if (ends_alone(options, shared.next)) {
        std::fprintf(stderr, "oneDNN alone ends the process with the arguments%s\n",
                     arguments.c_str());
        shared.is_alone = false;
        ++shared.ends, ++shared.next;
        return true;
    }
    std::fprintf(stderr, "failed%s with the arguments%s\n",
                 shared.is_alone ? " while oneDNN ran the graph without the plugin," : "",
                 arguments.c_str());
    return false;
}

// Bounds on an outcome's share of the graphs.
struct expectation {
    const char* text;
    long seen;
    double least, most;
};

std::vector<expectation> expectations(const progress& shared) {
    const tally& seen = shared.counted;
    const auto& library = test::library();
    // oneDNN before 3.8 does not fuse a MatMul and the mask of its scores, so there are no
    // composites. oneDNN 3.9 introduced host scalars.
    const double composites = library.minor < 8 ? 0 : 0.03, scalars = library.minor < 9 ? 0 : 0.01;
    // On a CPU without bf16, oneDNN refuses most graphs with 16-bit types.
    const double compared = library.bf16 ? 0.35 : 0.25, refused = library.bf16 ? 0.55 : 0.7;
    return {{"merged partitions", seen.merged, test::merges() ? 0.2 : 0, 9},
            {"composites", seen.composites, composites, 9},
            {"graphs compared", seen.compared, compared, 1},
            {"graphs that the plugin and oneDNN alone refuse", seen.refused, 0, refused},
            {"graphs that only the plugin runs", seen.only_own, 0, 0.15},
            {"graphs on which oneDNN ends the process", shared.ends, 0, most_ends},
            {"tensors that are right only with the plugin", seen.other_is_wrong, 0, 0.06},
            {"tensors wrong with the plugin and with oneDNN alone", seen.both_are_wrong, 0, 0.01},
            {"wrong tensors by oneDNN, computed only with the plugin", seen.unreached_are_wrong, 0,
             0.005},
            {"tensors that lose NaNs in SoftMax", seen.without_nans, 0, 0.01},
            {"graphs run with NaNs", seen.with_nans, 0.02, 1},
            {"graphs run with constants", seen.with_constants, 0.1, 1},
            {"graphs run with host scalars", seen.with_scalars, scalars, 1}};
}

// Ignores the bounds for few graphs, whose shares are not reliable.
bool is_as_expected(const progress& shared, unsigned long long inputs) {
    constexpr unsigned long long many = 200;
    bool holds_all = true;
    for (const auto& [text, seen, least, most] : expectations(shared)) {
        const double share = static_cast<double>(seen) / static_cast<double>(inputs);
        const bool holds = inputs < many || (share >= least && share <= most);
        std::fprintf(stderr, "%6ld %s%s\n", seen, text, holds ? "" : ": out of bounds");
        holds_all &= holds;
    }
    return holds_all;
}

int supervise(const program& options) {
    void* const memory =
        mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    progress& shared = *new (memory) progress;
    const double ends = most_ends * static_cast<double>(options.inputs());
    while (shared.next < options.inputs() && static_cast<double>(shared.ends) <= ends + 1)
        if (!run_in_child(options, shared)) return 1;
    std::fprintf(stderr, "%llu graphs\n", options.inputs());
    return is_as_expected(shared, options.inputs()) ? 0 : 1;
}

} // namespace
} // namespace maskwise::fuzz

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s INPUTS SEED [FILE...]\n", argv[0]);
        return 2;
    }
    const auto options = maskwise::fuzz::read_program(argc, argv);
    if (maskwise::fuzz::plugin_is_loaded()) return maskwise::fuzz::supervise(options);
    maskwise::fuzz::progress unused;
    maskwise::fuzz::run(options, unused);
    return 0;
}
