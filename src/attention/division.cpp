#include "attention/division.hpp"

#include "base/checked.hpp"

#include <algorithm>
#include <limits>

namespace maskwise {
namespace {

// A worker that takes its last item when all others are done takes a fifth longer than they.
constexpr std::int64_t items_per_worker = 4;
// An item of fewer key tiles would spend too much of its time on its state.
constexpr std::int64_t least_tiles = 8;
// Where each worker has as many row tiles, no mask that models have leaves one alone for long.
constexpr std::int64_t many_row_tiles = 32;
// What a row tile costs without its keys, in key tiles: its queries, its rows of dst.
constexpr std::int64_t own_cost = 1;

std::int64_t padded(std::int64_t bytes) {
    return static_cast<std::int64_t>(padded_bytes(static_cast<std::size_t>(bytes)));
}

std::int64_t rounded_up(std::int64_t count, std::int64_t by) {
    return (count + by - 1) / by;
}

// The most key tiles that an item should have.
std::int64_t tiles_of_item(const row_costs& costs, int workers) {
    std::int64_t sum = 0;
    const std::int64_t unlike = costs.heads / costs.heads_alike * costs.row_tiles;
    for (std::int64_t i = 0; i < unlike; ++i) sum += costs.tiles[i] + own_cost;
    return std::max(rounded_up(sum * costs.heads_alike, workers * items_per_worker), least_tiles);
}

void add_row_tile(std::int64_t row_tile, std::int64_t parts, work_list& list) {
    work_item item{row_tile, 0, parts, list.states};
    if (parts > 1) {
        list.shared[list.shared_count++] = item;
        list.states += parts;
    }
    for (; item.part < parts; ++item.part, ++item.state) list.items[list.count++] = item;
}

} // namespace

std::int64_t division::bytes() const {
    const wide all = wide{workers} * worker_bytes + wide{most_states} * state_bytes +
                     highest_bytes + norm_bytes + map_bytes + cost_bytes + list_bytes +
                     static_cast<std::int64_t>(scratch_alignment);
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    return all > most ? most : static_cast<std::int64_t>(all);
}

division divide(const attention_data& plan, int threads) {
    division made;
    made.threads = threads;
    made.row_tiles = plan.heads * plan.row_tiles();
    made.by_cost = threads > 1 && !plan.by_operators() && // which adds all values in one order
                   plan.key_tiles() >= 2 * least_tiles && made.row_tiles / threads < many_row_tiles;
    std::int64_t items = made.row_tiles;
    if (made.by_cost) {
        made.most_items = made.row_tiles + threads * items_per_worker;
        made.most_states = std::min(made.most_items, 2 * threads * items_per_worker);
        items = std::min(made.most_items, made.row_tiles * (plan.key_tiles() / least_tiles));
        made.cost_bytes = padded(made.row_tiles * std::int64_t{sizeof(std::int64_t)});
        made.list_bytes =
            padded((made.most_items + made.row_tiles) * std::int64_t{sizeof(work_item)});
    }
    made.workers = static_cast<int>(std::clamp<std::int64_t>(items, 1, threads));
    constexpr std::int64_t float_bytes = sizeof(float);
    made.highest_bytes = padded(plan.bias_mask.tiles() * float_bytes);
    if (plan.bounds_scores) made.norm_bytes = padded(plan.heads * plan.key_tiles() * float_bytes);
    made.map_bytes = padded(plan.mask.tiles() + plan.bias_mask.tiles());
    made.worker_bytes = padded(plan.worker.floats * float_bytes);
    made.state_bytes = padded(plan.state_floats() * float_bytes);
    return made;
}

// Rules are a sequence's, which is an index of the first dimension.
std::int64_t heads_alike(const attention_data& plan, bool has_rules) {
    const int last = plan.outer.rank() - 1;
    if (last < 0 || (has_rules && last == 0)) return 1;
    for (const mask_layout* layout : {&plan.mask, &plan.bias_mask})
        if (layout->heads != 0 && layout->outer_tiles[last] != 0) return 1;
    return plan.outer[last];
}

// Last rows first: below a causal boundary they have most keys.
void list_work(const row_costs& costs, int workers, work_list& list) {
    const std::int64_t most = tiles_of_item(costs, workers);
    const auto add_those = [&](std::int64_t least, std::int64_t below) {
        for (std::int64_t i = 0; i < costs.heads * costs.row_tiles; ++i) {
            const std::int64_t head = i / costs.row_tiles, number = i % costs.row_tiles;
            const std::int64_t row_tile = head * costs.row_tiles + costs.row_tiles - 1 - number;
            const std::int64_t tiles = costs.of(row_tile);
            const std::int64_t parts = tiles > most ? rounded_up(tiles, most) : 1;
            const std::int64_t each = parts > 1 ? rounded_up(tiles, parts) : tiles;
            if (least <= each && each < below) add_row_tile(row_tile, parts, list);
        }
    };
    add_those(most / 2, most + 1);
    add_those(most / 4, most / 2);
    add_those(0, most / 4);
}

} // namespace maskwise
