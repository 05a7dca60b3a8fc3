#pragma once

#include "fusion/find_row_chain.hpp"

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

// Builds attention as a list of operators, for tests of the matcher.
namespace maskwise::graph {

inline const dims matrix{1, 4, 8, 8};
inline constexpr std::size_t query = 1, key = 2, scores = 3, factor = 4, scaled = 5, mask = 6,
                             fill = 7, selected = 8, added = 9, bias = 10, weights = 11, value = 12,
                             result = 13, rows_id = 20, columns_id = 21, moved = 22, term = 23,
                             statistics = 31, bent = 40, capped = 41, cast = 42, bytes = 43;

inline logical_tensor tensor(std::size_t id, const dims& extents = matrix) {
    logical_tensor desc;
    desc.id = id;
    desc.type = data_type::f32;
    desc.rank_known = true;
    desc.extents = extents;
    return desc;
}

inline op make(std::size_t id, op_kind kind, std::vector<logical_tensor> inputs,
               std::size_t output) {
    op node;
    node.id = id;
    node.kind = kind;
    node.inputs = std::move(inputs);
    node.outputs = {tensor(output)};
    return node;
}

inline op with_axis(op node, std::int64_t axis) {
    node.axis = axis;
    return node;
}

struct partition {
    std::vector<op> ops;
    std::vector<std::size_t> outputs{result};

    op& at(std::size_t id) {
        for (op& each : ops)
            if (each.id == id) return each;
        throw std::out_of_range("no such operator");
    }
    std::optional<fusion::row_chain> find(std::string& reason) const {
        return fusion::find_row_chain(ops, outputs, reason);
    }
    // Throws if there is no chain.
    fusion::row_chain chain() const {
        std::string reason;
        const auto match = find(reason);
        return match ? *match : throw std::runtime_error("no chain: " + reason);
    }
};

using change = std::function<void(partition&)>;

inline change use_again(std::size_t id) {
    return [=](partition& p) { p.ops.push_back(make(14, op_kind::other, {tensor(id)}, 32)); };
}
inline change output(std::size_t id) {
    return [=](partition& p) { p.outputs.push_back(id); };
}
inline change set_kind(std::size_t op, op_kind kind) {
    return [=](partition& p) { p.at(op).kind = kind; };
}
inline change set_axis(std::size_t op, std::optional<std::int64_t> axis) {
    return [=](partition& p) { p.at(op).axis = axis; };
}
inline change set_input(std::size_t op, std::size_t slot, const logical_tensor& input) {
    return [=](partition& p) { p.at(op).inputs[slot] = input; };
}
inline change swap_inputs(std::size_t op, std::size_t a, std::size_t b) {
    return [=](partition& p) { std::swap(p.at(op).inputs[a], p.at(op).inputs[b]); };
}
inline change forbid_broadcast(std::size_t op) {
    return [=](partition& p) { p.at(op).auto_broadcast = "none"; };
}
inline change all_of(std::vector<change> list) {
    return [=](partition& p) {
        for (const change& each : list) each(p);
    };
}
// Adds an operator that computes value `id`, before all other operators.
inline change make_inside(std::size_t id) {
    return [=](partition& p) {
        p.ops.insert(p.ops.begin(), make(9, op_kind::other, {tensor(30)}, id));
    };
}

// Operators 1 to 6: MatMul, Divide, Select, Add, SoftMax, MatMul.
inline partition attention() {
    return {{make(1, op_kind::other, {tensor(query), tensor(key)}, scores),
             make(2, op_kind::divide, {tensor(scores), tensor(factor, {1})}, scaled),
             make(3, op_kind::select, {tensor(mask), tensor(scaled), tensor(fill, {})}, selected),
             make(4, op_kind::add, {tensor(selected), tensor(bias)}, added),
             with_axis(make(5, op_kind::soft_max, {tensor(added)}, weights), -1),
             make(6, op_kind::other, {tensor(weights), tensor(value)}, result)}};
}

// Attention with a causal mask. Operators 10 to 12 compute the mask from indices. Operator 13 moves
// the boundary.
inline partition causal() {
    partition graph = attention();
    graph.ops.insert(graph.ops.begin() + 2,
                     {with_axis(make(10, op_kind::gen_index, {tensor(scaled)}, rows_id), -2),
                      with_axis(make(11, op_kind::gen_index, {tensor(scaled)}, columns_id), 3),
                      make(13, op_kind::add, {tensor(rows_id), tensor(term, {})}, moved),
                      make(12, op_kind::greater_equal, {tensor(moved), tensor(columns_id)}, mask)});
    return graph;
}

} // namespace maskwise::graph
