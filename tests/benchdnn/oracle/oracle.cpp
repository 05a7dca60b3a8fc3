#include "oracle/oracle.hpp"

#include "oracle/ops.hpp"
#include "support/operations.hpp"

#include <algorithm>

namespace maskwise::bench {
namespace {

op_oracle find_oracle(const std::string& kind) {
    static const std::map<std::string, op_oracle> table{
        {"Dequantize", oracle_dequantize}, {"DynamicDequantize", oracle_dynamic_dequantize},
        {"GenIndex", oracle_gen_index},    {"MatMul", oracle_matmul},
        {"Quantize", oracle_quantize},     {"ReduceSum", oracle_reduce_sum},
        {"Reorder", oracle_reorder},       {"Select", oracle_select},
        {"SoftMax", oracle_softmax},       {"SoftMaxBackward", oracle_softmax_backward},
        {"StaticReshape", oracle_reshape}, {"StaticTranspose", oracle_transpose},
        {"TypeCast", oracle_type_cast},
    };
    const auto hit = table.find(kind);
    if (hit != table.end()) return hit->second;
    return test::find_operation(kind) ? oracle_elementwise : nullptr;
}

bool still_read(const graph& g, std::size_t next, std::size_t id) {
    for (std::size_t i = next; i < g.ops.size(); ++i)
        for (const logical_tensor& t : g.ops[i].inputs)
            if (t.id == id) return true;
    return false;
}

} // namespace

data_type arithmetic_type(data_type declared) {
    return declared == data_type::f32 ? data_type::f64 : declared;
}

tensor arithmetic_result(const op& o, std::size_t index, dims shape,
                         const std::vector<double>& values) {
    return from_doubles(arithmetic_type(o.outputs.at(index).dtype), std::move(shape), values);
}

std::string first_op_without_oracle(const graph& g) {
    for (const op& o : g.ops)
        if (o.kind != "End" && !find_oracle(o.kind)) return o.kind;
    return "";
}

std::vector<tensor> evaluate_op(const op& o, const operands& inputs) {
    const op_oracle run = find_oracle(o.kind);
    if (!run) throw input_error("no oracle for " + o.kind);
    return run(o, inputs);
}

tensor_map evaluate(const graph& g, tensor_map values, const std::set<std::size_t>& wanted) {
    for (std::size_t i = 0; i < g.ops.size(); ++i) {
        const op& o = g.ops[i];
        if (o.kind == "End") continue;
        operands inputs;
        for (const logical_tensor& t : o.inputs) inputs.push_back(&values.at(t.id));
        std::vector<tensor> results = evaluate_op(o, inputs);
        for (std::size_t j = 0; j < o.outputs.size(); ++j)
            values.insert_or_assign(o.outputs[j].id, std::move(results.at(j)));
        // With every intermediate, large graphs would not fit in memory.
        std::erase_if(values, [&](const auto& entry) {
            return wanted.count(entry.first) == 0 && !still_read(g, i + 1, entry.first);
        });
    }
    return values;
}

} // namespace maskwise::bench
