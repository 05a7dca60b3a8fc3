#include "graph/op_set.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>

namespace maskwise::graph {
namespace {

bool holds(std::span<const logical_tensor> tensors, std::size_t id) {
    return std::ranges::find(tensors, id, &logical_tensor::id) != tensors.end();
}

} // namespace

bool makes(std::span<const op> ops, std::size_t tensor) {
    return std::ranges::any_of(ops, [&](const op& maker) { return holds(maker.outputs, tensor); });
}

bool reads(std::span<const op> ops, std::size_t tensor) {
    return std::ranges::any_of(ops, [&](const op& reader) { return holds(reader.inputs, tensor); });
}

std::vector<logical_tensor> outer_inputs(std::span<const op> ops) {
    std::vector<logical_tensor> outer;
    for (const op& reader : ops)
        for (const logical_tensor& input : reader.inputs)
            if (!makes(ops, input.id)) outer.push_back(input);
    return outer;
}

division divide(std::span<const op> ops, std::span<const std::size_t> chain,
                std::size_t chain_input) {
    division parts;
    std::set<std::size_t> needed{chain_input};
    for (std::size_t i = ops.size(); i-- > 0;) {
        if (std::ranges::find(chain, ops[i].id) != chain.end()) continue;
        const bool is_needed = std::ranges::any_of(
            ops[i].outputs, [&](const auto& output) { return needed.contains(output.id); });
        if (is_needed)
            for (const logical_tensor& input : ops[i].inputs) needed.insert(input.id);
        (is_needed ? parts.before : parts.after).push_back(ops[i]);
    }
    std::reverse(parts.before.begin(), parts.before.end());
    std::reverse(parts.after.begin(), parts.after.end());
    return parts;
}

std::vector<std::size_t> topological_order(std::span<const node_ports> nodes) {
    std::map<std::size_t, std::size_t> makers;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        for (const std::size_t tensor : nodes[i].outputs) makers.emplace(tensor, i);
    std::vector<std::set<std::size_t>> users(nodes.size());
    std::vector<std::size_t> missing(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i)
        for (const std::size_t tensor : nodes[i].inputs)
            if (const auto maker = makers.find(tensor); maker != makers.end() && maker->second != i)
                missing[i] += users[maker->second].insert(i).second ? 1U : 0U;
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (missing[i] == 0) ready.push(i);
    std::vector<std::size_t> order;
    while (!ready.empty()) {
        const std::size_t next = ready.top();
        ready.pop();
        order.push_back(next);
        for (const std::size_t user : users[next])
            if (--missing[user] == 0) ready.push(user);
    }
    return order;
}

} // namespace maskwise::graph
