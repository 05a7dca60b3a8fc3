#include "model/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace maskwise::bench {

bool logical_tensor::is_known() const {
    return rank_known &&
           std::none_of(shape.begin(), shape.end(), [](auto d) { return d == unknown_dim; });
}

dims dense_strides(const dims& shape) {
    return test::dense_view(nullptr, shape, 1).strides_bytes;
}

std::string to_text(const dims& shape) {
    if (shape.empty()) return "-";
    const auto extent_text = [](std::int64_t extent) {
        return extent == unknown_dim ? std::string("?") : fmt::format("{}", extent);
    };
    std::string text = extent_text(shape[0]);
    for (std::size_t i = 1; i < shape.size(); ++i) text += 'x' + extent_text(shape[i]);
    return text;
}

dims broadcast(const dims& a, const dims& b) {
    const auto joined = test::broadcast({a, b});
    if (!joined)
        throw input_error("shapes " + to_text(a) + " and " + to_text(b) + " do not broadcast");
    return *joined;
}

std::size_t front_axis(std::int64_t axis, std::size_t rank) {
    const auto signed_rank = static_cast<std::int64_t>(rank);
    if (axis < -signed_rank || axis >= signed_rank)
        throw input_error("axis " + std::to_string(axis) + " is outside rank " +
                          std::to_string(rank));
    return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

void for_each_tensor(graph& g, const std::function<void(logical_tensor&)>& visit) {
    for (op& o : g.ops) {
        for (logical_tensor& t : o.inputs) visit(t);
        for (logical_tensor& t : o.outputs) visit(t);
    }
}

void for_each_tensor(const graph& g, const std::function<void(const logical_tensor&)>& visit) {
    for (const op& o : g.ops) {
        for (const logical_tensor& t : o.inputs) visit(t);
        for (const logical_tensor& t : o.outputs) visit(t);
    }
}

const logical_tensor* find_tensor(const graph& g, std::size_t id) {
    const logical_tensor* first = nullptr;
    for_each_tensor(g, [&](const logical_tensor& t) {
        if (t.id == id && !first) first = &t;
    });
    return first;
}

namespace {

bool lists(const std::vector<logical_tensor>& tensors, std::size_t id) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [id](const logical_tensor& t) { return t.id == id; });
}

} // namespace

const op* find_producer(const graph& g, std::size_t id) {
    for (const op& o : g.ops)
        if (lists(o.outputs, id)) return &o;
    return nullptr;
}

std::vector<const op*> find_consumers(const graph& g, std::size_t id) {
    std::vector<const op*> consumers;
    for (const op& o : g.ops)
        if (lists(o.inputs, id)) consumers.push_back(&o);
    return consumers;
}

std::vector<std::size_t> graph_inputs(const graph& g) {
    std::vector<std::size_t> ids;
    for (const op& o : g.ops)
        for (const logical_tensor& t : o.inputs)
            if (!find_producer(g, t.id) && std::find(ids.begin(), ids.end(), t.id) == ids.end())
                ids.push_back(t.id);
    return ids;
}

void sort_topologically(graph& g) {
    std::set<std::size_t> waiting; // outputs of ops that are not sorted yet
    for (const op& o : g.ops)
        for (const logical_tensor& t : o.outputs) waiting.insert(t.id);
    std::vector<op> sorted;
    std::vector<op> rest = std::move(g.ops);
    while (!rest.empty()) {
        const auto ready = std::find_if(rest.begin(), rest.end(), [&](const op& o) {
            return std::none_of(o.inputs.begin(), o.inputs.end(),
                                [&](const logical_tensor& t) { return waiting.count(t.id) > 0; });
        });
        if (ready == rest.end())
            throw input_error("the graph has a cycle through op " + std::to_string(rest[0].id));
        for (const logical_tensor& t : ready->outputs) waiting.erase(t.id);
        sorted.push_back(std::move(*ready));
        rest.erase(ready);
    }
    g.ops = std::move(sorted);
}

bool has_op(const graph& g, std::string_view kind) {
    return std::any_of(g.ops.begin(), g.ops.end(), [&](const op& o) { return o.kind == kind; });
}

} // namespace maskwise::bench
