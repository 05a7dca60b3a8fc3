#pragma once

// A case that scripts/bench sends to the measured processes: a Select and the folder of its data.

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace maskwise::bench {

using json = nlohmann::json;

// Extents and strides in elements, outermost first; one stride per extent. A dimension with stride
// 0 is broadcast.
struct operand {
    std::vector<std::int64_t> extents;
    std::vector<std::int64_t> strides_elems;
};

struct bench_case {
    std::string name;
    std::string dtype;  // f32, bf16, f16; for the engine also i64, bool
    std::string folder; // contains the files cond, src_0, src_1, expected
    operand cond, src_0, src_1, dst;
};

// Throws nlohmann::json::exception if a member is missing. Throws std::invalid_argument if the type
// is unsupported.
bench_case parse_case(const json& from);

std::int64_t width_bytes(const std::string& dtype);
// Number of elements from the first to the last in memory, including gaps; 0 if an extent is 0.
std::int64_t span_elems(const operand& o);

} // namespace maskwise::bench
