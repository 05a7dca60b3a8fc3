#include "input/flags.hpp"

#include "input/rewrite_text.hpp"
#include "model/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace maskwise::bench {
namespace {

using strings = std::vector<std::string>;

template <typename T>
T parse_number(const std::string& value, T lowest) {
    T number{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < lowest)
        throw input_error(fmt::format("'{}' is not an integer of at least {}", value, lowest));
    return number;
}

bool parse_bool(const std::string& value) {
    if (value.empty() || value == "true" || value == "1") return true;
    if (value == "false" || value == "0") return false;
    throw input_error(fmt::format("'{}' is not true or false", value));
}

const std::string& one_of(const std::string& value, std::initializer_list<std::string_view> words) {
    if (std::find(words.begin(), words.end(), value) == words.end())
        throw input_error(fmt::format("'{}' is none of {}", value, fmt::join(words, ", ")));
    return value;
}

void set_mode(case_config& c, const std::string& letters) {
    c.correctness = c.performance = c.list_only = false;
    for (const char letter : letters) {
        if (letter == 'C' || letter == 'c')
            c.correctness = true;
        else if (letter == 'P' || letter == 'p')
            c.performance = true;
        else if (letter == 'L' || letter == 'l')
            c.list_only = true;
        else
            throw input_error(fmt::format("'{}' is none of C, P, CP, L", letters));
    }
    if (letters.empty()) throw input_error("needs letters: C, P, CP or L");
    if (c.list_only && (c.correctness || c.performance))
        throw input_error(fmt::format("'{}': L excludes C and P", letters));
}

strings parse_dt(const std::string& value) {
    strings list = split(value, ',');
    const auto is_map = [](const std::string& s) { return s.find(':') != std::string::npos; };
    const auto maps = std::count_if(list.begin(), list.end(), is_map);
    if (maps != 0 && maps != static_cast<std::ptrdiff_t>(list.size()))
        throw input_error("uniform types and types per id cannot be mixed");
    for (const std::string& entry : list)
        if (!entry.empty() && !is_map(entry)) one_of(entry, {"f32", "bf16", "f16"});
    return list;
}

std::vector<std::int64_t> parse_mb(const std::string& value) {
    std::vector<std::int64_t> list;
    for (const std::string& entry : split(value, ','))
        list.push_back(entry.empty() ? 0 : parse_number<std::int64_t>(entry, 0));
    return list;
}

std::string parse_expect(const std::string& value) {
    if (!value.empty() && find_status(value) < 0)
        throw input_error(fmt::format("'{}' is not a status of oneDNN", value));
    return value;
}

strings parse_masks(const std::string& value) {
    const strings list = split(value, ',');
    for (const std::string& entry : list)
        one_of(entry, {"auto", "random", "causal", "padding", "ones", "zeros", "runs"});
    return list;
}

int parse_threads(const std::string& value) {
    return parse_number<int>(value, 1);
}

struct flag {
    std::string_view name;
    std::string_view argument;
    std::string_view help;
    std::string_view example;
    void (*apply)(flag_state&, run_options&, const std::string&);
};

// clang-format off
constexpr flag flags[] = {
    {"case", "FILE", "run this case with the options given before it", "--case=op/select.json", nullptr},
    {"batch", "FILE", "read options and cases from a file", "--batch=select_smoke", nullptr},
    {"reset", "", "set every option of a case back to its default", "--reset", nullptr},
    {"mode", "C|P|CP|L", "check correctness, measure, both, or only list the tests", "--mode=CP",
     [](flag_state& s, run_options&, const std::string& v) { set_mode(s.fixed, v); }},
    {"in-shapes", "ID:SHAPE[*TAG|*STRIDES]+...", "shapes by tensor id; '-' is 0-D; a comma starts the next test", "--in-shapes=1:32x33+2:-+3:2x32x33*bac",
     [](flag_state& s, run_options&, const std::string& v) { s.in_shapes = split(v, ','); }},
    {"op-attrs", "ID:NAME:VALUE*NAME:VALUE+...", "attributes by op id", "--op-attrs=0:auto_broadcast:none",
     [](flag_state& s, run_options&, const std::string& v) { s.op_attrs = split(v, ','); }},
    {"dt", "TYPE,... or ID:TYPE+...", "f32, bf16 or f16 for the whole graph, or a type by tensor id", "--dt=f32,bf16",
     [](flag_state& s, run_options&, const std::string& v) { s.dt = parse_dt(v); }},
    {"mb", "N,...", "batch size: replaces the largest leading extent of the inputs; 0: unchanged", "--mb=4",
     [](flag_state& s, run_options&, const std::string& v) { s.mb = parse_mb(v); }},
    {"op-kind", "ID:KIND+...", "replace an op's operator; 'undef' removes the op", "--op-kind=1:Multiply",
     [](flag_state& s, run_options&, const std::string& v) { s.op_kind = split(v, ','); }},
    {"tensor-property", "ID:PROPERTY+...", "undef, variable, constant or host_scalar by tensor id", "--tensor-property=2:constant",
     [](flag_state& s, run_options&, const std::string& v) { s.tensor_property = split(v, ','); }},
    {"attr-fpmath", "MODE[:true]", "fpmath mode of the graph; ':true' applies it to integers too", "--attr-fpmath=bf16",
     [](flag_state& s, run_options&, const std::string& v) { s.attr_fpmath = split(v, ','); }},
    {"expected-n-partitions", "N", "fail unless oneDNN makes N partitions; 0: any number", "--expected-n-partitions=2",
     [](flag_state& s, run_options&, const std::string& v) { s.fixed.expected_n_partitions = parse_number<int>(v, 0); }},
    {"mask", "WORD,...", "contents of boolean inputs: auto, random, causal, padding, ones, zeros, runs", "--mask=random,causal",
     [](flag_state& s, run_options&, const std::string& v) { s.mask = parse_masks(v); }},
    {"fill", "auto|own|driver|bits|finite", "contents of inputs. finite: the harness's values; bits: any bit pattern if every op only moves elements, else finite; own: bits if Maskwise runs every Select, else finite; driver: inputs and error bounds of oneDNN's driver; auto: own, and also driver if --mask is auto and an op does arithmetic", "--fill=driver",
     [](flag_state& s, run_options&, const std::string& v) { s.fixed.fill = one_of(v, {"auto", "own", "driver", "bits", "finite"}); }},
    {"owner", "maskwise|onednn", "fail unless this library executes every partition that holds a Select (every partition if there is no Select)", "--owner=maskwise",
     [](flag_state& s, run_options&, const std::string& v) { s.fixed.owner = one_of(v, {"", "maskwise", "onednn"}); }},
    {"expect", "STATUS", "the case passes only if a call returns this status", "--expect=invalid_shape",
     [](flag_state& s, run_options&, const std::string& v) { s.fixed.expect = parse_expect(v); }},
    {"in-place", "[true|false]", "let an output overwrite an input if the library reports them as an in-place pair", "--in-place",
     [](flag_state& s, run_options&, const std::string& v) { s.fixed.in_place = parse_bool(v); }},
    {"fix-times-per-prb", "N", "take N samples, or fewer if --max-ms-per-prb ends first; 0: until the median is stable", "--fix-times-per-prb=5",
     [](flag_state& s, run_options&, const std::string& v) { s.fixed.fix_times_per_prb = parse_number<int>(v, 0); }},
    {"max-ms-per-prb", "N", "stop measuring a test after N milliseconds", "--max-ms-per-prb=500",
     [](flag_state& s, run_options&, const std::string& v) { s.fixed.max_ms_per_prb = parse_number<int>(v, 1); }},
    {"cold-cache", "none|all", "all: drop the test's buffers from the caches before each measurement", "--cold-cache=all",
     [](flag_state& s, run_options&, const std::string& v) { s.fixed.cold_cache = one_of(v, {"none", "all"}) == "all"; }},
    {"engine", "cpu", "for compatibility with oneDNN's driver; only cpu is supported", "--engine=cpu",
     [](flag_state&, run_options&, const std::string& v) { one_of(v, {"cpu"}); }},
    {"perf-template", "def|csv|TEXT", "format of a measurement: %engine% %name% %prb% %-time% %~time% %0time% %+time% %bytes% %-bw% ...", "--perf-template=%prb%,%-time%",
     [](flag_state&, run_options& r, const std::string& v) { r.perf_template = v; }},
    {"list", "", "list the tests and their mode without running them", "--list --batch=select_ci",
     [](flag_state&, run_options& r, const std::string& v) { r.list = parse_bool(v); }},
    {"isolate", "", "run tests in a child process; a crash becomes ABORTED", "--isolate",
     [](flag_state&, run_options& r, const std::string& v) { r.isolate = parse_bool(v); }},
    {"rounds", "N", "run the whole list of tests N times", "--rounds=100 --batch=select_smoke",
     [](flag_state&, run_options& r, const std::string& v) { r.rounds = parse_number<int>(v, 1); }},
    {"threads", "N", "let the process use N processors", "--threads=1",
     [](flag_state&, run_options& r, const std::string& v) { r.threads = parse_threads(v); }},
    {"report", "FILE", "write every verdict and measurement as JSON", "--report=result.json",
     [](flag_state&, run_options& r, const std::string& v) { r.report = v; }},
    {"verbose", "N", "1: print each test before its run; 3: also partitions; 7: also the rewritten graph; short form: -vN", "-v1",
     [](flag_state&, run_options& r, const std::string& v) { r.verbose = parse_number<int>(v, 0); }},
    {"serve", "", "read requests from standard input (for --isolate and scripts)", "--serve",
     [](flag_state&, run_options& r, const std::string& v) { r.serve = parse_bool(v); }},
    {"help", "", "print this text", "--help",
     [](flag_state&, run_options& r, const std::string&) { r.help = true; }},
};
// clang-format on

} // namespace

std::pair<std::string, std::string> split_flag(const std::string& token) {
    if (token.rfind("-v", 0) == 0 && token.size() > 2) return {"verbose", token.substr(2)};
    if (token.rfind("--", 0) != 0 || token.size() == 2)
        throw input_error(fmt::format("'{}' is not a flag (see --help)", token));
    const std::size_t equals = token.find('=');
    if (equals == std::string::npos) return {token.substr(2), ""};
    return {token.substr(2, equals - 2), token.substr(equals + 1)};
}

void apply_flag(const std::string& name, const std::string& value, flag_state& state,
                run_options& run) {
    for (const flag& f : flags) {
        if (f.name != name || !f.apply) continue;
        try {
            f.apply(state, run, value);
        } catch (const input_error& error) {
            throw input_error(fmt::format("--{}: {}", name, error.what()));
        }
        return;
    }
    throw input_error(fmt::format("unknown flag '--{}' (see --help)", name));
}

std::string help_text() {
    std::string text =
        "usage: maskwise-bench [OPTIONS] --case=FILE | --batch=FILE ...\n"
        "Options act on every --case after them. A case option after the last --case is an error,\n"
        "unless it restores its default.\n\n";
    for (const flag& f : flags)
        text += fmt::format("  --{}{}{}\n      {}\n      example: {}\n", f.name,
                            f.argument.empty() || f.argument[0] == '[' ? "" : "=", f.argument,
                            f.help, f.example);
    return text;
}

} // namespace maskwise::bench
