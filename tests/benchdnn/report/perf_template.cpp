#include "report/reporter.hpp"

#include "model/graph.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace maskwise::bench {
namespace {

// '-': the fastest call, '0': the mean, '+': the slowest, '~': the median.
double pick_ms(const measurement& m, char which) {
    switch (which) {
    case '-':
        return m.min_ms;
    case '+':
        return m.max_ms;
    case '~':
        return m.median_ms;
    default:
        return m.mean_ms;
    }
}

std::string word(const std::string& name, const case_config& config, const case_result& result) {
    const measurement& m = *result.perf;
    const std::string plain = name.substr(name.find_first_not_of("-0+~"));
    if (plain == "engine") return "cpu";
    if (plain == "prb") return repro_line(config);
    if (plain == "name") return std::filesystem::path(config.file).stem().string();
    if (plain == "time") return fmt::format("{:.6g}", pick_ms(m, name[0]));
    if (plain == "bw") return fmt::format("{:.4g}", m.gb_per_s(pick_ms(m, name[0])));
    if (plain == "ctime") return fmt::format("{:.6g}", result.compile_ms);
    if (plain == "bytes") return fmt::format("{}", m.bytes);
    if (plain == "samples") return fmt::format("{}", m.samples);
    throw input_error("--perf-template: unknown word '%" + name + "%'");
}

} // namespace

std::string format_measurement(const std::string& perf_template, const case_config& config,
                               const case_result& result) {
    std::string text = perf_template;
    if (text == "def") text = "perf,%engine%,%prb%,%-time%,%0time%";
    if (text == "csv") text = "perf,%engine%,%name%,%prb%,%-time%,%~time%,%0time%,%bytes%,%~bw%";
    std::string out;
    for (std::size_t position = 0; position < text.size();) {
        const std::size_t open = text.find('%', position);
        const std::size_t close = open == std::string::npos ? open : text.find('%', open + 1);
        out += text.substr(position, open - position);
        if (close == std::string::npos) break;
        const std::string name = text.substr(open + 1, close - open - 1);
        if (name.find_first_not_of("-0+~") == std::string::npos)
            throw input_error("--perf-template: empty word");
        out += word(name, config, result);
        position = close + 1;
    }
    return out;
}

} // namespace maskwise::bench
