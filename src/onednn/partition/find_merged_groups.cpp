#include "onednn/partition/find_merged_groups.hpp"

#include "graph/find_row_chain.hpp"
#include "graph/op_set.hpp"
#include "onednn/library/real_partition.hpp"
#include "onednn/record/translate.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <utility>

namespace maskwise::onednn {
namespace {

// The operators that oneDNN took: the first of each id.
std::vector<graph::op> translate_all(const graph_record& record) {
    std::vector<graph::op> ops;
    std::set<std::size_t> seen;
    for (const auto& op : record.ops)
        if (seen.insert(op->id).second) ops.push_back(translate(*op));
    return ops;
}

// The operators are in topological order: the last makes dst.
std::shared_ptr<merged_group> new_group(const op_list& records, std::span<const graph::op> ops) {
    auto group = std::make_shared<merged_group>();
    group->names = joined_names(records);
    group->outputs = {records.back()->outputs[0]};
    for (const auto& record : records) {
        group->op_ids.push_back(record->id);
        std::ranges::copy_if(record->inputs, std::back_inserter(group->inputs),
                             [&](const auto& input) { return !graph::makes(ops, input.id); });
    }
    return group;
}

std::shared_ptr<const merged_group> make_loop(const graph_record& graph,
                                              graph::expression_group&& found) {
    auto records = records_of(graph.ops, found.ops);
    auto group = new_group(records, found.ops);
    group->region = {graph.settings, std::move(records), found.ops, ids_of(group->outputs), {}, {}};
    group->loop = std::move(found);
    return group;
}

std::shared_ptr<const merged_group> make_rows(const graph_record& graph,
                                              graph::merged_chain&& found) {
    auto records = records_of(graph.ops, found.ops);
    auto group = new_group(records, found.ops);
    if (found.chain.statistics)
        for (const auto& record : records)
            if (const auto* output = find_by_id(record->outputs, found.chain.statistics->id))
                group->outputs.push_back(*output);
    group->region = {graph.settings,         std::move(records),     std::move(found.ops),
                     ids_of(group->outputs), std::move(found.chain), {}};
    return group;
}

} // namespace

group_map find_merged_groups(const graph_record& record, const single_op_map& single) {
    const auto ops = translate_all(record);
    group_map groups;
    const auto add = [&groups](const std::shared_ptr<const merged_group>& group) {
        for (const std::size_t id : group->op_ids) groups[id] = group;
    };
    const auto is_run_alone = [&](std::size_t id) {
        const auto found = single.find(id);
        return found != single.end() && found->second;
    };
    for (auto& chain : graph::find_row_chains(ops, is_run_alone))
        add(make_rows(record, std::move(chain)));
    const auto is_free = [&](std::size_t id) {
        return single.contains(id) && !groups.contains(id);
    };
    for (auto& group : graph::find_groups(ops, is_free)) add(make_loop(record, std::move(group)));
    return groups;
}

} // namespace maskwise::onednn
