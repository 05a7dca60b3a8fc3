#include "onednn/partition/find_merged_groups.hpp"

#include "fusion/find_row_chain.hpp"
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
std::shared_ptr<const merged_group> make_group(const graph_record& graph,
                                               fusion::merged_chain&& found) {
    auto group = std::make_shared<merged_group>();
    auto records = records_of(graph.ops, found.ops);
    group->names = joined_names(records);
    group->outputs = {records.back()->outputs[0]};
    for (const auto& record : records) {
        group->op_ids.push_back(record->id);
        std::ranges::copy_if(record->inputs, std::back_inserter(group->inputs),
                             [&](const auto& input) { return !graph::makes(found.ops, input.id); });
        if (const auto* output = found.chain.statistics
                                     ? find_by_id(record->outputs, found.chain.statistics->id)
                                     : nullptr)
            group->outputs.push_back(*output);
    }
    group->region = {graph.settings, std::move(records), std::move(found.ops),
                     ids_of(group->outputs), fusion::block{std::move(found.chain), {}}};
    return group;
}

} // namespace

group_map find_merged_groups(const graph_record& record, const single_op_set& single) {
    const auto ops = translate_all(record);
    const auto stands_alone = [&](std::size_t id) { return single.contains(id); };
    group_map groups;
    for (auto& chain : fusion::find_row_chains(ops, stands_alone)) {
        const auto group = make_group(record, std::move(chain));
        for (const std::size_t id : group->op_ids) groups[id] = group;
    }
    return groups;
}

} // namespace maskwise::onednn
