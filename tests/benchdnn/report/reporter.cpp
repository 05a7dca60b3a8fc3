#include "report/reporter.hpp"

#include "model/graph.hpp"
#include "report/result_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace maskwise::bench {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
    return std::chrono::duration<double>(clock::now() - start).count();
}

} // namespace

reporter::reporter(const run_options& options, std::size_t tests)
    : options_(options), tests_(tests), terminal_(isatty(STDERR_FILENO) != 0),
      started_(clock::now()) {}

void reporter::start(const case_config& config) {
    if (options_.verbose >= 1) fmt::print("run: {}\n", repro_line(config));
    show_progress();
    std::fflush(stdout);
}

void reporter::add(const case_config& config, const case_result& result) {
    clear_progress();
    if (!options_.report.empty()) results_.emplace_back(config, result);
    ++done_;
    ++counts_[result.state];
    const bool only_measured = !config.correctness && result.state == verdict::passed;
    if (!only_measured) print_verdict(config, result);
    if (result.perf) print_measurement(config, result);
    if (options_.verbose >= 3)
        for (const partition_summary& p : result.partitions)
            fmt::print("partition: ops {} {} {}\n", p.op_ids,
                       p.supported ? "supported" : "unsupported", p.owner);
    std::fflush(stdout);
}

void reporter::print_verdict(const case_config& config, const case_result& result) const {
    std::string line = fmt::format("{}:{}", done_ - 1, verdict_word(result.state));
    if (!result.reason.empty()) line += fmt::format(" ({})", result.reason);
    if (result.errors > 0)
        line += fmt::format(" (errors:{} total:{})", result.errors, result.total);
    if (result.state != verdict::listed) line += fmt::format(" ({:.0f} ms)", result.wall_ms);
    fmt::print("{} __REPRO: {}\n", line, repro_line(config));
}

void reporter::print_measurement(const case_config& config, const case_result& result) {
    fmt::print("{}\n", format_measurement(options_.perf_template, config, result));
    total_min_ms_ += result.perf->min_ms;
    total_mean_ms_ += result.perf->mean_ms;
    ++measured_;
}

void reporter::show_progress() const {
    if (!terminal_) return;
    const double spent = seconds_since(started_);
    const double remaining =
        done_ == 0 ? 0 : spent / static_cast<double>(done_) * static_cast<double>(tests_ - done_);
    fmt::print(stderr, "\r[{}/{}] {:.0f} s, about {:.0f} s remaining\033[K", done_, tests_, spent,
               remaining);
}

void reporter::clear_progress() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
}

int reporter::finish(const std::string& library) {
    clear_progress();
    const auto count = [this](verdict v) {
        const auto hit = counts_.find(v);
        return hit == counts_.end() ? std::size_t{0} : hit->second;
    };
    std::size_t failed = 0;
    for (const auto& [state, number] : counts_)
        if (counts_as_failure(state)) failed += number;
    fmt::print("tests:{} passed:{} skipped:{} mistrusted:{} unimplemented:{} invalid_arguments:{} "
               "failed:{} listed:{}",
               done_, count(verdict::passed), count(verdict::skipped), count(verdict::mistrusted),
               count(verdict::unimplemented), count(verdict::invalid_arguments), failed,
               count(verdict::listed));
    if (count(verdict::aborted) > 0) fmt::print(" aborted:{}", count(verdict::aborted));
    fmt::print("\n");
    if (measured_ > 0)
        fmt::print("total perf: min(ms):{:.6g} avg(ms):{:.6g}\n", total_min_ms_, total_mean_ms_);
    fmt::print("total: {:.2f} s, {}\n", seconds_since(started_), library);
    if (!options_.report.empty()) write_report(library);
    return failed > 0 ? 1 : 0;
}

void reporter::write_report(const std::string& library) const {
    nlohmann::json root;
    root["library"] = library;
    for (const auto& [state, number] : counts_) root["summary"][verdict_word(state)] = number;
    root["tests"] = nlohmann::json::array();
    for (const auto& [config, result] : results_) {
        nlohmann::json entry = to_json(result);
        entry["repro"] = repro_flags(config);
        entry["mask"] = config.mask;
        root["tests"].push_back(std::move(entry));
    }
    std::ofstream file(options_.report);
    file << root.dump(2) << '\n';
    if (!file.flush()) throw input_error("cannot write report '" + options_.report + "'");
}

} // namespace maskwise::bench
