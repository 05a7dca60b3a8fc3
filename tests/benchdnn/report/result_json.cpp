#include "report/result_json.hpp"

#include <stdexcept>

namespace maskwise::bench {
namespace {

using json = nlohmann::ordered_json;

constexpr verdict all_verdicts[] = {
    verdict::passed,     verdict::failed,        verdict::skipped,
    verdict::mistrusted, verdict::unimplemented, verdict::invalid_arguments,
    verdict::listed,     verdict::aborted,
};

verdict find_verdict(const std::string& word) {
    for (const verdict v : all_verdicts)
        if (word == verdict_word(v)) return v;
    throw std::runtime_error("unknown verdict '" + word + "'");
}

json measurement_json(const measurement& m) {
    return {{"min_ms", m.min_ms},
            {"median_ms", m.median_ms},
            {"mean_ms", m.mean_ms},
            {"max_ms", m.max_ms},
            {"samples", m.samples},
            {"bytes", m.bytes},
            {"gb_per_s", m.gb_per_s(m.median_ms)}};
}

measurement measurement_from(const json& entry) {
    measurement m;
    m.min_ms = entry.at("min_ms");
    m.median_ms = entry.at("median_ms");
    m.mean_ms = entry.at("mean_ms");
    m.max_ms = entry.at("max_ms");
    m.samples = entry.at("samples");
    m.bytes = entry.at("bytes");
    return m;
}

} // namespace

json to_json(const case_result& r) {
    json entry{{"state", verdict_word(r.state)},
               {"reason", r.reason},
               {"wrong_tensors", r.wrong_tensors},
               {"errors", r.errors},
               {"total", r.total},
               {"allowance_used", r.allowance_used},
               {"wall_ms", r.wall_ms},
               {"compile_ms", r.compile_ms}};
    entry["partitions"] = json::array();
    for (const partition_summary& p : r.partitions)
        entry["partitions"].push_back(
            {{"op_ids", p.op_ids}, {"supported", p.supported}, {"owner", p.owner}});
    entry["selects"] = json::array();
    for (const select_summary& s : r.selects)
        entry["selects"].push_back(
            {{"dtype", s.dtype}, {"shapes", s.shapes}, {"strides", s.strides}});
    if (r.perf) entry["perf"] = measurement_json(*r.perf);
    return entry;
}

case_result result_from_json(const json& entry) {
    case_result r;
    r.state = find_verdict(entry.at("state"));
    r.reason = entry.at("reason");
    r.wrong_tensors = entry.at("wrong_tensors").get<std::vector<std::size_t>>();
    r.errors = entry.at("errors");
    r.total = entry.at("total");
    r.allowance_used = entry.at("allowance_used");
    r.wall_ms = entry.at("wall_ms");
    r.compile_ms = entry.at("compile_ms");
    for (const json& p : entry.at("partitions"))
        r.partitions.push_back({p.at("op_ids"), p.at("supported"), p.at("owner")});
    for (const json& s : entry.at("selects"))
        r.selects.push_back({s.at("dtype"), s.at("shapes"), s.at("strides")});
    if (entry.contains("perf")) r.perf = measurement_from(entry["perf"]);
    return r;
}

} // namespace maskwise::bench
