#include "common/bench_case.hpp"

#include <stdexcept>

namespace maskwise::bench {
namespace {

operand parse_operand(const json& from) {
    return {from.at("dims").get<std::vector<std::int64_t>>(),
            from.at("strides").get<std::vector<std::int64_t>>()};
}

} // namespace

bench_case parse_case(const json& from) {
    bench_case c;
    c.name = from.at("name");
    c.dtype = from.at("dtype");
    c.folder = from.at("folder");
    c.cond = parse_operand(from.at("cond"));
    c.src_0 = parse_operand(from.at("src_0"));
    c.src_1 = parse_operand(from.at("src_1"));
    c.dst = parse_operand(from.at("dst"));
    width_bytes(c.dtype);
    return c;
}

std::int64_t width_bytes(const std::string& dtype) {
    if (dtype == "f32") return 4;
    if (dtype == "bf16" || dtype == "f16") return 2;
    if (dtype == "i64") return 8;
    if (dtype == "bool") return 1;
    throw std::invalid_argument("no element type '" + dtype +
                                "'; there are f32, bf16, f16, i64, bool");
}

std::int64_t span_elems(const operand& o) {
    std::int64_t span = 1;
    for (std::size_t d = 0; d < o.extents.size(); ++d) {
        if (o.extents[d] == 0) return 0;
        span += (o.extents[d] - 1) * o.strides_elems[d];
    }
    return span;
}

} // namespace maskwise::bench
