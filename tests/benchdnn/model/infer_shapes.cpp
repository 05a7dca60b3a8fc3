#include "model/infer_shapes.hpp"

#include "support/operations.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace maskwise::bench {
namespace {

using shapes = std::vector<dims>;

const dims& input_shape(const op& o, std::size_t index) {
    if (index >= o.inputs.size() || !o.inputs[index].is_known())
        throw input_error("op " + std::to_string(o.id) + " (" + o.kind + "): input " +
                          std::to_string(index) + " has no known shape");
    return o.inputs[index].shape;
}

shapes same_as_first(const op& o) {
    return {input_shape(o, 0)};
}

shapes infer_binary(const op& o) {
    const dims& a = input_shape(o, 0);
    const dims& b = input_shape(o, 1);
    if (o.attr<std::string>("auto_broadcast", "numpy") == "none" && a != b)
        throw input_error("shapes " + to_text(a) + " and " + to_text(b) +
                          " differ, auto_broadcast is none");
    return {broadcast(a, b)};
}

// Ignores cond, because cond must not enlarge the result. The library must refuse a cond that does
// not fit.
shapes infer_select(const op& o) {
    if (o.attr<std::string>("auto_broadcast", "numpy") == "none") return {input_shape(o, 0)};
    return {broadcast(input_shape(o, 1), input_shape(o, 2))};
}

shapes infer_matmul(const op& o) {
    dims a = input_shape(o, 0);
    dims b = input_shape(o, 1);
    if (a.size() < 2 || b.size() < 2)
        throw input_error("the harness needs MatMul inputs of rank 2 or more");
    if (o.attr<bool>("transpose_a", false)) std::swap(a[a.size() - 1], a[a.size() - 2]);
    if (o.attr<bool>("transpose_b", false)) std::swap(b[b.size() - 1], b[b.size() - 2]);
    if (a.back() != b[b.size() - 2])
        throw input_error("MatMul: shapes " + to_text(a) + " and " + to_text(b) +
                          " cannot be multiplied");
    dims result = broadcast(dims(a.begin(), a.end() - 2), dims(b.begin(), b.end() - 2));
    result.push_back(a[a.size() - 2]);
    result.push_back(b.back());
    return {result};
}

shapes infer_transpose(const op& o) {
    const dims& in = input_shape(o, 0);
    const dims order = o.attr<dims>("order", {});
    if (order.size() != in.size()) throw input_error("order does not fit " + to_text(in));
    dims result;
    for (const std::int64_t axis : order) result.push_back(in[front_axis(axis, in.size())]);
    return {result};
}

shapes infer_reshape(const op& o) {
    const dims& in = input_shape(o, 0);
    dims result = o.attr<dims>("shape", {});
    const bool zero_copies = o.attr<bool>("special_zero", false);
    for (std::size_t i = 0; zero_copies && i < result.size() && i < in.size(); ++i)
        if (result[i] == 0) result[i] = in[i];
    const auto rest = std::find(result.begin(), result.end(), -1);
    if (rest != result.end()) {
        *rest = 1;
        const std::int64_t others = test::count_of(result);
        *rest = others == 0 ? 0 : test::count_of(in) / others;
    }
    if (test::count_of(result) != test::count_of(in))
        throw input_error("cannot reshape " + to_text(in) + " to " + to_text(result));
    return {result};
}

shapes infer_softmax(const op& o) {
    shapes result = same_as_first(o);
    if (o.outputs.size() > 1) { // the row statistics
        dims stats = result[0];
        stats[front_axis(o.attr<std::int64_t>("axis", 1), stats.size())] = 1;
        result.push_back(stats);
    }
    return result;
}

shapes infer_reduce(const op& o) {
    const dims& in = input_shape(o, 0);
    std::vector<bool> reduced(in.size(), false);
    for (const std::int64_t axis : o.attr<dims>("axes", {}))
        reduced[front_axis(axis, in.size())] = true;
    const bool keep_dims = o.attr<bool>("keep_dims", false);
    dims result;
    for (std::size_t i = 0; i < in.size(); ++i) {
        if (!reduced[i]) result.push_back(in[i]);
        if (reduced[i] && keep_dims) result.push_back(1);
    }
    return {result};
}

using rule = shapes (*)(const op&);

const std::map<std::string, rule, std::less<>>& rules() {
    static const auto table = [] {
        std::map<std::string, rule, std::less<>> t;
        for (const char* kind :
             {"BiasAdd", "Dequantize", "DynamicDequantize", "DynamicQuantize", "Elu", "GenIndex",
              "HardSigmoid", "HardSwish", "LogSoftmax", "Mish", "Quantize", "Reorder",
              "SoftMaxBackward", "SoftPlus", "TypeCast"})
            t.emplace(kind, same_as_first);
        for (const char* kind : {"ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin",
                                 "ReduceProd", "ReduceSum"})
            t.emplace(kind, infer_reduce);
        t.emplace("MatMul", infer_matmul);
        t.emplace("Select", infer_select);
        t.emplace("SoftMax", infer_softmax);
        t.emplace("StaticReshape", infer_reshape);
        t.emplace("StaticTranspose", infer_transpose);
        return t;
    }();
    return table;
}

void assign_shape(graph& g, std::size_t id, const dims& shape) {
    for_each_tensor(g, [&](logical_tensor& t) {
        if (t.id != id || (t.rank_known && t.shape == shape)) return;
        t.rank_known = true;
        t.shape = shape;
        t.strides.clear();
    });
}

void forget_shape(graph& g, std::size_t id) {
    for_each_tensor(g, [&](logical_tensor& t) {
        if (t.id != id) return;
        t.rank_known = false;
        t.shape.clear();
        t.strides.clear();
    });
}

} // namespace

std::optional<std::vector<dims>> infer_output_shapes(const op& o) {
    if (const auto elementwise = test::find_operation(o.kind))
        return test::input_count(*elementwise) == 1 ? same_as_first(o) : infer_binary(o);
    const auto hit = rules().find(o.kind);
    if (hit == rules().end()) return std::nullopt;
    return hit->second(o);
}

void infer_graph(graph& g, const std::set<std::size_t>& fixed) {
    for (std::size_t i = 0; i < g.ops.size(); ++i) {
        std::optional<std::vector<dims>> inferred;
        bool fits = true;
        try {
            inferred = infer_output_shapes(g.ops[i]);
        } catch (const input_error&) {
            fits = false;
        }
        for (std::size_t j = 0; j < g.ops[i].outputs.size(); ++j) {
            const std::size_t id = g.ops[i].outputs[j].id;
            if (fixed.count(id) > 0) continue;
            if (!fits)
                forget_shape(g, id);
            else if (inferred && j < inferred->size())
                assign_shape(g, id, (*inferred)[j]);
        }
    }
}

graph with_known_shapes(const graph& g) {
    graph known = g;
    std::set<std::size_t> fixed;
    for_each_tensor(g, [&](const logical_tensor& t) {
        if (t.is_known()) fixed.insert(t.id);
    });
    infer_graph(known, fixed);
    return known;
}

} // namespace maskwise::bench
