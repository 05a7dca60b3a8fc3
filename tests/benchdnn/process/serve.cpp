#include "process/modes.hpp"

#include "client/runner.hpp"
#include "process/own_command.hpp"
#include "process/worker.hpp"
#include "report/result_json.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <sstream>

namespace maskwise::bench {
namespace {

using nlohmann::json;

json answer_run(runner& r, const std::string& flags) {
    const auto arguments = json::parse(flags).get<std::vector<std::string>>();
    const command_line parsed = parse_command_line(arguments, own_path());
    if (parsed.cases.size() != 1)
        throw input_error(fmt::format("run needs one test, not {}", parsed.cases.size()));
    const case_result result = r.run(parsed.cases[0]);
    json answer{{"result", to_json(result)}};
    if (!parsed.cases[0].list_only) answer["library"] = library_description();
    return answer;
}

json answer(runner& r, const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    try {
        if (verb == "run") return answer_run(r, line.substr(verb.size() + 1));
        int samples = 0;
        double max_ms = 0;
        if (verb == "time" && words >> samples >> max_ms)
            return {{"samples", r.time_again(samples, max_ms)}};
        throw input_error(fmt::format("unknown request '{}'", line));
    } catch (const input_error& error) {
        return {{"input_error", error.what()}};
    }
}

} // namespace

int serve(int verbose) {
    runner r(verbose);
    for (std::string line; std::getline(std::cin, line);) {
        const std::string text = answer(r, line).dump();
        fmt::print("{}{}\n", answer_prefix, text);
        std::fflush(stdout);
    }
    return 0;
}

} // namespace maskwise::bench
