#include "input/case_config.hpp"

#include <fmt/format.h>

namespace maskwise::bench {
namespace {

std::string mode_letters(const case_config& c) {
    if (c.list_only) return "L";
    return std::string(c.correctness ? "C" : "") + (c.performance ? "P" : "");
}

} // namespace

std::vector<std::string> repro_flags(const case_config& c) {
    const case_config defaults;
    std::vector<std::string> flags;
    const auto add = [&](const char* name, const auto& value, const auto& otherwise) {
        if (value != otherwise) flags.push_back(fmt::format("--{}={}", name, value));
    };
    add("mode", mode_letters(c), mode_letters(defaults));
    add("fix-times-per-prb", c.fix_times_per_prb, defaults.fix_times_per_prb);
    add("max-ms-per-prb", c.max_ms_per_prb, defaults.max_ms_per_prb);
    add("cold-cache", std::string(c.cold_cache ? "all" : "none"), std::string("none"));
    add("mb", c.mb, defaults.mb);
    add("dt", c.dt, defaults.dt);
    add("op-kind", c.op_kind, defaults.op_kind);
    add("tensor-property", c.tensor_property, defaults.tensor_property);
    add("in-shapes", c.in_shapes, defaults.in_shapes);
    add("op-attrs", c.op_attrs, defaults.op_attrs);
    add("attr-fpmath", c.attr_fpmath, defaults.attr_fpmath);
    add("expected-n-partitions", c.expected_n_partitions, defaults.expected_n_partitions);
    add("mask", c.mask, defaults.mask);
    add("fill", c.fill, defaults.fill);
    add("owner", c.owner, defaults.owner);
    add("expect", c.expect, defaults.expect);
    add("in-place", std::string(c.in_place ? "true" : "false"), std::string("false"));
    flags.push_back("--case=" + c.file);
    return flags;
}

std::string repro_line(const case_config& config) {
    return fmt::format("{}", fmt::join(repro_flags(config), " "));
}

} // namespace maskwise::bench
