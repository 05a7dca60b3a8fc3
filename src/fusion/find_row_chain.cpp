#include "fusion/find_row_chain.hpp"

#include "fusion/chain_finder.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>

namespace maskwise::fusion {
namespace {

// Moves the operators that compute the value from `missing` to `ordered`, in topological order.
void add_makers(std::size_t value, const graph_index& values, std::set<std::size_t>& missing,
                std::vector<op>& ordered) {
    const op* maker = values.maker(value);
    if (maker == nullptr || missing.erase(maker->id) == 0) return;
    for (const auto& input : maker->inputs) add_makers(input.id, values, missing, ordered);
    ordered.push_back(*maker);
}

// Whether every inner value of the chain (all values except the results) is read, and only by the
// chain. GenIndex counts as a reader of the tensor whose shape GenIndex uses.
bool is_closed(const merged_chain& merged, const graph_index& values) {
    const row_chain& chain = merged.chain;
    const std::set<std::size_t> members(chain.op_ids.begin(), chain.op_ids.end());
    const auto is_result = [&](std::size_t value) {
        return value == chain.result || (chain.statistics && value == chain.statistics->id);
    };
    const auto is_inner = [&](const logical_tensor& value) {
        const auto users = values.users(value.id);
        return !users.empty() && std::ranges::all_of(users, [&](const op* user) {
            return members.contains(user->id);
        });
    };
    return std::ranges::all_of(merged.ops, [&](const op& op) {
        return std::ranges::all_of(op.outputs, [&](const logical_tensor& value) {
            return is_result(value.id) || is_inner(value);
        });
    });
}

std::optional<merged_chain> find_merged(const op& select, const match_policy& policy) {
    try {
        merged_chain merged{find_chain(select, policy), {}};
        if (!merged.chain.soft_max) return std::nullopt;
        std::set<std::size_t> members(merged.chain.op_ids.begin(), merged.chain.op_ids.end());
        add_makers(merged.chain.result, policy.values(), members, merged.ops);
        if (is_closed(merged, policy.values())) return merged;
    } catch (const no_chain&) { // the operators stay separate partitions
    }
    return std::nullopt;
}

} // namespace

std::optional<row_chain> find_row_chain(const std::vector<op>& ops,
                                        const std::vector<std::size_t>& output_ids,
                                        std::string& reason) {
    const auto selects = std::ranges::count(ops, op_kind::select, &op::kind);
    const auto kind = selects == 0 ? op_kind::soft_max : op_kind::select;
    if (selects > 1 || std::ranges::count(ops, kind, &op::kind) != 1) {
        const auto soft_maxes = std::ranges::count(ops, op_kind::soft_max, &op::kind);
        reason = std::to_string(selects) + " Selects and " + std::to_string(soft_maxes) +
                 " SoftMaxes in one partition";
        return std::nullopt;
    }
    try {
        return find_chain(*std::ranges::find(ops, kind, &op::kind),
                          partition_policy(ops, output_ids));
    } catch (const no_chain& none) {
        reason = none.reason;
        return std::nullopt;
    }
}

std::vector<merged_chain> find_row_chains(std::span<const op> graph,
                                          const op_filter& stands_alone) {
    graph_policy policy(graph, stands_alone);
    std::vector<merged_chain> chains;
    for (const op& op : graph) {
        if (op.kind != op_kind::select || !policy.may_take(op) ||
            !computes_in_f32(op.outputs[0].type))
            continue;
        if (auto merged = find_merged(op, policy)) {
            policy.mark_taken(merged->chain.op_ids);
            chains.push_back(std::move(*merged));
        }
    }
    return chains;
}

} // namespace maskwise::fusion
