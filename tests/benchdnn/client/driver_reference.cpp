#include "client/driver_reference.hpp"

#include "client/execution.hpp"
#include "client/program.hpp"
#include "driver/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace maskwise::bench::driver {
namespace {

bool is_quantization(const op& o) {
    return o.kind.ends_with("Quantize") || o.kind.ends_with("Dequantize");
}

tensor in_f32(const tensor& t) {
    if (!is_floating(t.dtype) || t.dtype == data_type::f32) return t;
    return from_doubles(data_type::f32, t.shape, to_doubles(t));
}

void round_to(data_type type, tensor& t) {
    if (type == data_type::undef || type == data_type::f32 || !is_floating(type)) return;
    t = in_f32(from_doubles(type, t.shape, to_doubles(t)));
}

// All operators except quantization get f32 in place of other floating-point types.
op op_alone(op o) {
    for (auto* ports : {&o.inputs, &o.outputs})
        for (logical_tensor& t : *ports) {
            if (is_floating(t.dtype) && !is_quantization(o)) t.dtype = data_type::f32;
            if (t.layout_kind == layout::any) t.strides.clear();
            t.layout_kind = layout::strided;
        }
    return o;
}

// Whether oneDNN computes every f32 result exactly or with one rounding. If so, the oracle's f64
// result, rounded to f32, equals oneDNN's result.
bool is_exact(const op& o) {
    static const std::set<std::string> kinds{
        "Add",          "Dequantize",    "Divide",   "DynamicDequantize", "GenIndex",
        "GreaterEqual", "Maximum",       "Minimum",  "Multiply",          "Reorder",
        "Select",       "StaticReshape", "Subtract", "TypeCast",          "StaticTranspose"};
    return kinds.count(o.kind) > 0;
}

std::vector<tensor> run_alone(const op& o, const operands& inputs) {
    graph alone;
    alone.ops = {o};
    program p(alone);
    if (p.steps().size() != 1 || !p.steps()[0].supported)
        throw std::runtime_error(fmt::format("no reference: oneDNN does not run {} alone", o.kind));
    p.compile(false);
    if (p.steps()[0].owned_by_maskwise)
        throw std::runtime_error(fmt::format("no reference: Maskwise runs {}, not oneDNN", o.kind));
    tensor_map values;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const data_type type = o.inputs[i].dtype;
        values.insert_or_assign(o.inputs[i].id,
                                inputs[i]->dtype == type
                                    ? *inputs[i]
                                    : from_doubles(type, inputs[i]->shape, to_doubles(*inputs[i])));
    }
    execution e(p, values, edge::back, false);
    e.run();
    e.wait();
    std::vector<tensor> results;
    for (const logical_tensor& t : o.outputs) results.push_back(in_f32(e.value(t.id)));
    return results;
}

// For SoftMax with statistics, the driver calls no oneDNN primitive. The driver's own loop sums
// each row from the first column to the last.
std::vector<tensor> softmax_with_statistics(const op& o, const tensor& scores) {
    const std::size_t axis = front_axis(o.attr<std::int64_t>("axis", 1), scores.shape.size());
    if (axis + 1 != scores.shape.size())
        throw std::runtime_error(fmt::format("no reference for SoftMax with statistics along "
                                             "axis {} of {}",
                                             axis, to_text(scores.shape)));
    const auto columns = static_cast<std::size_t>(scores.shape.back());
    std::vector<double> weights = to_doubles(scores);
    std::vector<double> statistics;
    for (auto row = weights.begin(); row != weights.end();
         row += static_cast<std::ptrdiff_t>(columns)) {
        const auto end = row + static_cast<std::ptrdiff_t>(columns);
        const auto highest = std::max(static_cast<float>(*std::max_element(row, end)),
                                      -std::numeric_limits<float>::max());
        float sum = 0;
        for (auto x = row; x != end; ++x) {
            *x = std::exp(static_cast<float>(*x) - highest);
            sum += static_cast<float>(*x);
        }
        statistics.push_back(sum == 0 ? 0.0F : highest + std::log(sum));
        const float factor = sum == 0 ? 1.0F : 1.0F / sum;
        for (auto x = row; x != end; ++x) *x = static_cast<float>(*x) * factor;
    }
    return {from_doubles(data_type::f32, scores.shape, weights),
            from_doubles(data_type::f32, o.outputs[1].shape, statistics)};
}

std::vector<tensor> results_of(const op& declared, const operands& inputs) {
    const op o = op_alone(declared);
    if (o.kind == "SoftMax" && o.outputs.size() > 1) return softmax_with_statistics(o, *inputs[0]);
    if (!is_exact(o)) return run_alone(o, inputs);
    std::vector<tensor> results = evaluate_op(o, inputs);
    for (tensor& t : results) t = in_f32(t);
    return results;
}

bool is_read_later(const graph& part, std::size_t next, std::size_t id) {
    return std::any_of(part.ops.begin() + static_cast<std::ptrdiff_t>(next), part.ops.end(),
                       [id](const op& o) {
                           return std::ranges::any_of(
                               o.inputs, [id](const logical_tensor& t) { return t.id == id; });
                       });
}

} // namespace

tensor_map reference_of(const graph& whole, const graph& part, const tensor_map& inputs_of_part,
                        const std::set<std::size_t>& wanted) {
    tensor_map values;
    for (const auto& [id, t] : inputs_of_part) values.emplace(id, in_f32(t));
    for (std::size_t i = 0; i < part.ops.size(); ++i) {
        const op& o = part.ops[i];
        if (o.kind == "End") continue;
        const roundings rounded = roundings_of(whole, part, o);
        operands inputs;
        for (std::size_t k = 0; k < o.inputs.size(); ++k) {
            tensor& value = values.at(o.inputs[k].id);
            round_to(rounded.inputs[k], value);
            inputs.push_back(&value);
        }
        std::vector<tensor> results = results_of(o, inputs);
        for (std::size_t k = 0; k < o.outputs.size(); ++k) {
            round_to(rounded.outputs[k], results.at(k));
            values.insert_or_assign(o.outputs[k].id, std::move(results[k]));
        }
        std::erase_if(values, [&](const auto& entry) { // else large graphs would not fit in memory
            return wanted.count(entry.first) == 0 && !is_read_later(part, i + 1, entry.first);
        });
    }
    return values;
}

} // namespace maskwise::bench::driver
