// Chains of operators that are partitions of their own so far.

#include "graph/chain_finder.hpp"

#include <algorithm>
#include <set>

namespace maskwise::graph {
namespace {

bool is_row_type(data_type type) {
    return type == data_type::f32 || type == data_type::bf16 || type == data_type::f16;
}

bool is_worth_merging(const row_chain& chain) {
    return std::any_of(chain.steps.begin(), chain.steps.end(), [](const row_step& step) {
        return step.kind != row_step_kind::elementwise;
    });
}

} // namespace

// The chain's own operators, each behind those whose values it uses.
std::vector<const op*> chain_finder::ops_of(const row_chain& chain) const {
    const std::set<std::size_t> own(chain.op_ids.begin(), chain.op_ids.end());
    std::vector<const op*> ordered;
    std::set<std::size_t> seen;
    const std::function<void(std::size_t)> visit = [&](std::size_t value) {
        const op* maker = producer(value);
        if (maker == nullptr || !own.contains(maker->id) || !seen.insert(maker->id).second) return;
        for (const auto& input : maker->inputs) visit(input.id);
        ordered.push_back(maker);
    };
    visit(chain.result);
    return ordered;
}

// No value but the chain's results is used by others: GenIndex counts here, since among single
// operators it needs the tensor that it takes its shape from.
bool chain_finder::is_closed(const row_chain& chain) const {
    const std::set<std::size_t> own(chain.op_ids.begin(), chain.op_ids.end());
    const auto leaves = [&](const logical_tensor& value) {
        if (value.id == chain.result) return false;
        if (chain.statistics && value.id == chain.statistics->id) return false;
        const auto users = users_.find(value.id);
        return users == users_.end() ||
               std::any_of(users->second.begin(), users->second.end(),
                           [&](const op* user) { return !own.contains(user->id); });
    };
    const auto ops = ops_of(chain);
    return std::none_of(ops.begin(), ops.end(), [&](const op* each) {
        return std::any_of(each->outputs.begin(), each->outputs.end(), leaves);
    });
}

std::vector<merged_chain> find_row_chains(std::span<const op> graph,
                                          const std::function<bool(std::size_t)>& stands_alone) {
    std::set<std::size_t> taken;
    const std::function<bool(std::size_t)> is_free = [&](std::size_t id) {
        return !taken.contains(id) && stands_alone(id);
    };
    chain_finder finder(graph, is_free);
    std::vector<merged_chain> found;
    for (const op& each : graph) {
        if (each.kind != op_kind::select || !is_free(each.id) || !is_row_type(each.outputs[0].type))
            continue;
        try {
            merged_chain next{finder.find(each), {}};
            if (next.chain.op_ids.size() < 2 || !is_worth_merging(next.chain) ||
                !finder.is_closed(next.chain))
                continue;
            for (const op* member : finder.ops_of(next.chain)) next.ops.push_back(*member);
            taken.insert(next.chain.op_ids.begin(), next.chain.op_ids.end());
            found.push_back(std::move(next));
        } catch (const no_chain&) { // stays what it is
        }
    }
    return found;
}

} // namespace maskwise::graph
