#pragma once

#include "input/case_reader.hpp"
#include "model/graph.hpp"
#include "oracle/oracle.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace maskwise::bench {

inline logical_tensor make_tensor(std::size_t id, data_type type, dims shape) {
    logical_tensor t;
    t.id = id;
    t.dtype = type;
    t.shape = std::move(shape);
    return t;
}

inline op make_op(std::string kind, std::vector<logical_tensor> in, std::vector<logical_tensor> out,
                  std::map<std::string, attribute> attrs = {}) {
    return {0, "op", std::move(kind), std::move(attrs), std::move(in), std::move(out)};
}

// One op on f32 values; the result of the first output as doubles.
inline std::vector<double> run_f32(const std::string& kind,
                                   const std::vector<std::pair<dims, std::vector<double>>>& in,
                                   const dims& out_shape,
                                   const std::map<std::string, attribute>& attrs = {}) {
    std::vector<tensor> values;
    std::vector<logical_tensor> ports;
    for (const auto& [shape, numbers] : in) {
        values.push_back(from_doubles(data_type::f32, shape, numbers));
        ports.push_back(make_tensor(ports.size(), data_type::f32, shape));
    }
    operands operands_in;
    for (const tensor& t : values) operands_in.push_back(&t);
    const op o = make_op(kind, ports, {make_tensor(99, data_type::f32, out_shape)}, attrs);
    return to_doubles(evaluate_op(o, operands_in).at(0));
}

// The case text of a lone Select, as oneDNN's dump writes it.
inline std::string select_text(const std::string& cond = "[2, 3]",
                               const std::string& dst_shape = "[2, 3]",
                               const std::string& dst_stride = "[3, 1]") {
    const auto port = [](int id, const char* type, const std::string& shape,
                         const std::string& stride) {
        return fmt::format(R"({{"id": {}, "dtype": "{}", "shape": {}, "stride": {},
            "layout_type": "strided", "property_type": "variable"}})",
                           id, type, shape, stride);
    };
    return fmt::format(R"({{"version": "3.13.0", "engine_kind": "cpu", "fpmath_mode": "strict",
        "input_ports": [0, 1, 2], "output_ports": [3], "graph": [{{"id": 140243871618688,
        "name": "s", "kind": "Select",
        "attrs": {{"auto_broadcast": {{"type": "string", "value": "numpy"}}}},
        "inputs": [{}, {}, {}], "outputs": [{}]}}]}})",
                       port(0, "boolean", cond, "[3, 1]"), port(1, "f32", "[2, 3]", "[3, 1]"),
                       port(2, "f32", "[]", "[]"), port(3, "f32", dst_shape, dst_stride));
}

} // namespace maskwise::bench
