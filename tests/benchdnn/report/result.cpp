#include "report/result_json.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace maskwise::bench {
namespace {

// In the order of the enumeration.
constexpr const char* verdict_words[] = {"PASSED",     "FAILED",        "SKIPPED",
                                         "MISTRUSTED", "UNIMPLEMENTED", "INVALID_ARGUMENTS",
                                         "LISTED",     "ABORTED"};

verdict find_verdict(const std::string& word) {
    const auto* const match = std::find(std::begin(verdict_words), std::end(verdict_words), word);
    if (match == std::end(verdict_words))
        throw std::runtime_error("unknown verdict '" + word + "'");
    return static_cast<verdict>(match - verdict_words);
}

} // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(measurement, first_ms, min_ms, median_ms, mean_ms, max_ms,
                                   samples, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(partition_summary, op_ids, supported, owner)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(select_summary, dtype, shapes, strides)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(case_result, reason, wrong_tensors, errors, total,
                                   allowance_used, wall_ms, compile_ms, partitions, selects)

const char* verdict_word(verdict v) {
    return verdict_words[static_cast<std::size_t>(v)];
}

bool counts_as_failure(verdict v) {
    return v == verdict::failed || v == verdict::unimplemented || v == verdict::invalid_arguments ||
           v == verdict::aborted;
}

nlohmann::json to_json(const case_result& r) {
    nlohmann::json entry = r;
    entry["state"] = verdict_word(r.state);
    if (!r.perf) return entry;
    entry["perf"] = *r.perf;
    entry["perf"]["gb_per_s"] = r.perf->gb_per_s(r.perf->median_ms);
    return entry;
}

case_result result_from_json(const nlohmann::json& entry) {
    auto r = entry.get<case_result>();
    r.state = find_verdict(entry.at("state"));
    if (entry.contains("perf")) r.perf = entry["perf"].get<measurement>();
    return r;
}

} // namespace maskwise::bench
