#include "driver/fill.hpp"

#include "driver/draw.hpp"
#include "driver/pattern.hpp"
#include "oracle/ops.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace maskwise::bench::driver {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

const std::set<std::string> binary{"Add",     "BiasAdd", "Divide",   "GreaterEqual",
                                   "Maximum", "Minimum", "Multiply", "Subtract"};
const std::set<std::string> main_ops{"MatMul",  "Add",      "Divide",   "Maximum",
                                     "Minimum", "Multiply", "Subtract", "Select"};
const std::set<std::string> passed_through{"StaticTranspose", "StaticReshape", "TypeCast",
                                           "Quantize", "Dequantize"};

std::size_t count_of(const logical_tensor& t) {
    return static_cast<std::size_t>(test::count_of(t.shape));
}

product product_of(const op& o) {
    const dims& shape = o.inputs.at(0).shape;
    const std::size_t columns = shape.size() - (o.attr<bool>("transpose_a", false) ? 2 : 1);
    return {o.inputs[0].dtype, o.inputs.at(1).dtype, o.outputs.at(0).dtype, shape.at(columns)};
}

// The driver draws a transposed operand in the order of the untransposed operand.
numbers in_stored_order(const op& o, std::size_t slot, const dims& shape, numbers values) {
    const char* flag = slot == 0 ? "transpose_a" : "transpose_b";
    if (slot > 1 || shape.size() < 2 || !o.attr<bool>(flag, false)) return values;
    const auto rows = static_cast<std::size_t>(shape[shape.size() - 2]);
    const auto columns = static_cast<std::size_t>(shape.back());
    numbers result(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t position = i % (rows * columns);
        result[i] = values[i - position + position % columns * rows + position / columns];
    }
    return result;
}

class filling {
public:
    filling(const graph& g, tensor_map& values)
        : graph_(g), pattern_(recognize(g)), values_(values) {}

    void draw_all() {
        for (const std::size_t id : graph_inputs(graph_)) draw(*find_tensor(graph_, id));
        for (const op& o : graph_.ops)
            if (main_ops.count(o.kind) > 0) displace(o);
        for (const op& o : graph_.ops) put_statistics(o);
    }

private:
    void put(const logical_tensor& t, const numbers& values) {
        values_.insert_or_assign(t.id, from_doubles(t.dtype, t.shape, values));
    }

    // Replaces an input's values once; later calls for the same input do nothing.
    void displace(const logical_tensor& t, const numbers& values) {
        if (displaced_.insert(t.id).second) put(t, values);
    }

    bool is_input(const logical_tensor& t) const { return !find_producer(graph_, t.id); }

    void draw(const logical_tensor& t) {
        const op& o = *find_consumers(graph_, t.id).front();
        const auto slot = static_cast<std::size_t>(
            std::find_if(o.inputs.begin(), o.inputs.end(),
                         [&](const logical_tensor& port) { return port.id == t.id; }) -
            o.inputs.begin());
        if (t.dtype == data_type::s32 || t.dtype == data_type::s64) return; // sequence lengths
        if (o.kind == "MatMul")
            put(t,
                in_stored_order(o, slot, t.shape, draw_operand(product_of(o), slot, count_of(t))));
        if (o.kind == "Select") put(t, draw_binary(slot == 0 ? 3 : slot, t.dtype, count_of(t)));
        if (binary.count(o.kind) > 0) put(t, draw_binary(slot + 1, t.dtype, count_of(t)));
        if (o.kind == "StaticTranspose" || o.kind == "StaticReshape")
            put(t, draw_moved(t.dtype, count_of(t)));
    }

    void displace(const op& o) {
        for (std::size_t i = 0; i < o.inputs.size(); ++i) displace_inputs_of(o, i);
        put_mask(o);
    }

    // Displaces the graph input that reaches operand `i` of `o` through casts, moves and
    // dequantization, if the driver has a rule for this input.
    void displace_inputs_of(const op& o, std::size_t i) {
        const logical_tensor* t = &o.inputs[i];
        for (const op* from = find_producer(graph_, t->id); from;
             from = find_producer(graph_, t->id)) {
            const logical_tensor& source = from->inputs.at(0);
            if (from->kind == "DynamicDequantize" && pattern_ == pattern::attention &&
                is_input(source))
                return displace_compressed(o, i, *from);
            if ((from->kind == "Dequantize" ||
                 (from->kind == "StaticReshape" && o.kind == "MatMul")) &&
                is_input(source))
                return displace(source, quantized(o, i, source));
            if (passed_through.count(from->kind) == 0) return;
            if (from->kind == "StaticReshape" && is_input(source)) return;
            t = &source;
        }
        if (!is_floating(t->dtype)) return;
        if (o.kind == "Divide") displace(*t, draw_from({2, 4, 8}, count_of(*t)));
        if (o.kind == "Multiply") displace(*t, draw_from({0.25, 0.5, 1}, count_of(*t)));
    }

    // Returns values for `source`, drawn as if `o` computed in the type of `source`.
    static numbers quantized(const op& o, std::size_t i, const logical_tensor& source) {
        if (o.kind != "MatMul") return draw_binary(i + 1, source.dtype, count_of(source));
        product p = product_of(o);
        p.source = p.weights = source.dtype;
        if (source.dtype == data_type::u8) p.weights = data_type::s8;
        if (p.result != data_type::bf16)
            p.result = p.weights == data_type::s8 ? data_type::u8 : data_type::f32;
        return draw_operand(p, i, count_of(source));
    }

    void displace_compressed(const op& o, std::size_t i, const op& dequantize) {
        const logical_tensor& source = dequantize.inputs.at(0);
        numbers values = quantized(o, i, source);
        for (double& value : values) {
            value = std::trunc(value / 2);
            if (source.dtype == data_type::u8) value = std::max(value, 0.0);
        }
        displace(source, values);
        const logical_tensor& scales = dequantize.inputs.at(1);
        displace(scales, draw_from({0.0625, 0.125, 0.25}, count_of(scales)));
    }

    // Displaces the mask: the graph input of the Add or Select before the SoftMax. In the backward
    // graph, the Subtract of the statistics takes the SoftMax's place.
    void put_mask(const op& o) {
        const op* reader = first_reader(graph_, o);
        if (pattern_ == pattern::other || !reader || o.outputs[0].dtype == data_type::s32) return;
        if (reader->kind != "SoftMax" && reader->kind != "Subtract") return;
        const auto mask =
            std::ranges::find_if(o.inputs, [this](const logical_tensor& t) { return is_input(t); });
        if (mask == o.inputs.end()) return;
        if (o.kind == "Add" && mask->shape.size() >= 2)
            displace(*mask, added_mask(*mask, accepts_masked_rows(*reader)));
        if (o.kind != "Select") return;
        const bool is_implicit = mask->dtype != data_type::boolean;
        const bool scores_are_src_0 = !is_input(o.inputs[1]);
        displace(*mask, numbers(count_of(*mask), is_implicit        ? minus_infinity
                                                 : scores_are_src_0 ? 1.0
                                                                    : 0.0));
    }

    static bool accepts_masked_rows(const op& reader) {
        return reader.attr<std::string>("mode", "none") == "inf_as_zero";
    }

    // Returns a causal mask. With `masks_last_row`, its last row is all -inf. A mask of one row is
    // all 0.
    static numbers added_mask(const logical_tensor& t, bool masks_last_row) {
        const std::int64_t rows = t.shape[t.shape.size() - 2];
        const std::int64_t columns = t.shape.back();
        numbers values(count_of(t), 0.0);
        if (rows == 1) return values;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto position = static_cast<std::int64_t>(i) % (rows * columns);
            const std::int64_t row = position / columns;
            if (position % columns > row || (masks_last_row && row == rows - 1))
                values[i] = minus_infinity;
        }
        return values;
    }

    // Writes the scores' SoftMax statistics to the input that the backward graph subtracts.
    void put_statistics(const op& o) {
        const op* reader = first_reader(graph_, o);
        if (pattern_ != pattern::attention_backward || o.kind != "Subtract") return;
        if (!reader || reader->kind != "Exp" || !is_input(o.inputs.at(1))) return;
        const logical_tensor& scores = o.inputs[0];
        graph before;
        for (const op& member : graph_.ops) {
            before.ops.push_back(member);
            if (member.outputs.at(0).id == scores.id) break;
        }
        const tensor value = evaluate(before, values_, {scores.id}).at(scores.id);
        op softmax = o;
        softmax.attrs = {{"axis", std::int64_t{-1}}, {"mode", std::string("inf_as_zero")}};
        softmax.outputs = {scores, o.inputs[1]};
        put(o.inputs[1], to_doubles(oracle_softmax(softmax, {&value}).at(1)));
    }

    const graph& graph_;
    pattern pattern_;
    tensor_map& values_;
    std::set<std::size_t> displaced_;
};

} // namespace

tensor_map fill_inputs(const graph& g, tensor_map values) {
    filling(g, values).draw_all();
    return values;
}

} // namespace maskwise::bench::driver
