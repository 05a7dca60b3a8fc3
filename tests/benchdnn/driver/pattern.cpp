#include "driver/pattern.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace maskwise::bench::driver {
namespace {

using kinds = std::set<std::string>;

const kinds to_scores{"Dequantize", "TypeCast", "DynamicDequantize"};
const kinds to_softmax{"Divide",   "Multiply",     "Add",           "Subtract",       "Select",
                       "GenIndex", "GreaterEqual", "StaticReshape", "StaticTranspose"};
const kinds to_values{"Dequantize", "TypeCast", "Quantize", "Dropout"};
const kinds to_exp{"Divide", "Multiply", "Add", "Subtract", "Select", "GenIndex", "GreaterEqual"};
const kinds to_gradients{"Divide", "Multiply", "TypeCast"};

// Follows first readers from `o` to an op of `kind`, which may be `o` itself. Null if an op on the
// way is not in `between` or has no reader.
const op* follow(const graph& g, const op* o, const std::string& kind, const kinds& between) {
    while (o && o->kind != kind) o = between.count(o->kind) > 0 ? first_reader(g, *o) : nullptr;
    return o;
}

const op* next(const graph& g, const op* o, const std::string& kind, const kinds& between) {
    return o ? follow(g, first_reader(g, *o), kind, between) : nullptr;
}

bool starts_attention(const graph& g, const op& first) {
    const op* scores = follow(g, &first, "MatMul", to_scores);
    return next(g, next(g, scores, "SoftMax", to_softmax), "MatMul", to_values) != nullptr;
}

bool is_produced_by(const graph& g, const logical_tensor& t, const std::string& kind) {
    const op* o = find_producer(g, t.id);
    return o && o->kind == kind;
}

// Whether `o` is the Multiply of the probabilities by (gradient - ReduceSum(Multiply)).
bool is_softmax_gradient(const graph& g, const op& o) {
    if (o.kind != "Multiply") return false;
    return std::any_of(o.inputs.begin(), o.inputs.end(), [&](const logical_tensor& t) {
        if (!is_produced_by(g, t, "Subtract")) return false;
        const logical_tensor& sum = find_producer(g, t.id)->inputs.at(1);
        return is_produced_by(g, sum, "ReduceSum") &&
               is_produced_by(g, find_producer(g, sum.id)->inputs.at(0), "Multiply");
    });
}

bool starts_attention_backward(const graph& g, const op& first) {
    if (first.kind != "MatMul") return false;
    const op* shifted = next(g, &first, "Subtract", to_exp);
    const op* exp = shifted ? first_reader(g, *shifted) : nullptr;
    if (!exp || exp->kind != "Exp") return false;
    std::vector<const op*> readers = find_consumers(g, exp->outputs.at(0).id);
    if (readers.size() != 2) return false;
    if (!is_softmax_gradient(g, *readers[0])) std::swap(readers[0], readers[1]);
    if (!is_softmax_gradient(g, *readers[0])) return false;
    if (!follow(g, readers[1], "MatMul", {"TypeCast", "Dropout"})) return false;
    std::vector<const op*> last = find_consumers(g, readers[0]->outputs.at(0).id);
    if (last.size() == 2 && last[0]->kind == "End") last.erase(last.begin());
    return !last.empty() && last.size() <= 2 && follow(g, last[0], "MatMul", to_gradients);
}

bool is_start(const graph& g, const op& o) {
    return std::none_of(o.inputs.begin(), o.inputs.end(),
                        [&](const logical_tensor& t) { return find_producer(g, t.id) != nullptr; });
}

const op* reader_in(const graph& whole, const graph& part, const op& o) {
    for (std::size_t i = 0; i < o.outputs.size(); ++i) {
        const op* reader = first_reader(whole, o, i);
        if (reader && std::any_of(part.ops.begin(), part.ops.end(),
                                  [reader](const op& member) { return member.id == reader->id; }))
            return reader;
    }
    return nullptr;
}

// Returns the type that a result is rounded to: the result's type, or the type after one or two
// casts of the result. undef if no op of the partition reads the result, or if the first cast ends
// the partition or feeds a Quantize.
data_type rounding_of_output(const graph& whole, const graph& part, const op& o,
                             const logical_tensor& result) {
    const op* reader = reader_in(whole, part, o);
    if (!reader) return data_type::undef;
    if (reader->kind != "TypeCast") return result.dtype;
    const op* next_op = reader_in(whole, part, *reader);
    if (!next_op || next_op->kind == "Quantize") return data_type::undef;
    return (next_op->kind == "TypeCast" ? next_op : reader)->outputs.at(0).dtype;
}

bool rounds(const graph& whole, const graph& part, const op& o) {
    if (o.kind == "SoftMax") return recognize(whole) == pattern::attention;
    if (o.kind != "MatMul" || recognize(whole) != pattern::attention_backward) return false;
    const op* reader = reader_in(whole, part, o);
    return !reader || reader->kind == "ReduceSum";
}

} // namespace

const op* first_reader(const graph& g, const op& o, std::size_t index) {
    if (index >= o.outputs.size()) return nullptr;
    const std::vector<const op*> readers = find_consumers(g, o.outputs[index].id);
    return readers.empty() ? nullptr : readers.front();
}

pattern recognize(const graph& g) {
    const auto any_start = [&](auto starts) {
        return std::any_of(g.ops.begin(), g.ops.end(),
                           [&](const op& o) { return is_start(g, o) && starts(g, o); });
    };
    if (any_start(starts_attention)) return pattern::attention;
    if (any_start(starts_attention_backward)) return pattern::attention_backward;
    return pattern::other;
}

roundings roundings_of(const graph& whole, const graph& part, const op& o) {
    roundings result{std::vector(o.inputs.size(), data_type::undef),
                     std::vector(o.outputs.size(), data_type::undef)};
    if (!rounds(whole, part, o)) return result;
    for (std::size_t i = 0; i < o.inputs.size(); ++i) result.inputs[i] = o.inputs[i].dtype;
    for (std::size_t i = 0; i < o.outputs.size(); ++i)
        result.outputs[i] = rounding_of_output(whole, part, o, o.outputs[i]);
    return result;
}

} // namespace maskwise::bench::driver
