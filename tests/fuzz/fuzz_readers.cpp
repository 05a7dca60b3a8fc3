// The harness's readers: any text gives a graph, options or an input_error. What was read is
// written and read again, rewritten and its shapes inferred.

#include "input/case_reader.hpp"
#include "input/command_line.hpp"
#include "input/rewrite.hpp"
#include "model/infer_shapes.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using namespace maskwise::bench;

void check_graph(const std::string& text, const std::string& options) {
    const graph read = parse_case(text, "fuzz.json");
    const std::string written = graph_text(read);
    if (graph_text(parse_case(written, "again.json")) != written) {
        std::fprintf(stderr, "reads back as another graph:\n%s\n", written.c_str());
        std::abort();
    }
    with_known_shapes(read);
    case_config config;
    config.in_shapes = options;
    graph changed = read;
    rewrite(changed, config);
}

// A case that was understood is written as flags that give the same case again. Files are named by
// this test alone: a fuzzer would soon open devices.
void check_options(const std::string& text) {
    if (text.find("case") != std::string::npos || text.find("batch") != std::string::npos) return;
    auto tokens = tokenize_batch(text);
    tokens.push_back("--case=" FUZZ_CASE_FILE);
    const command_line read = parse_command_line(tokens, "/nowhere/bin/bench");
    for (const case_config& config : read.cases) {
        const auto again = parse_command_line(repro_flags(config), "/nowhere/bin/bench");
        if (again.cases.size() == 1 && again.cases[0] == config) continue;
        std::fprintf(stderr, "reads back as another case: %s\n", repro_line(config).c_str());
        std::abort();
    }
}

// The first byte says what the text is, a zero byte parts it in two.
void check(const std::string& input) {
    const auto text = input.substr(1);
    if (input[0] == 'o') return check_options(text);
    const auto end = text.find('\0');
    check_graph(text.substr(0, end), end == std::string::npos ? "" : text.substr(end + 1));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    try {
        check(std::string(data, data + size));
    } catch (const input_error&) { // what a reader may answer
    }
    return 0;
}
