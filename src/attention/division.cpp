#include "attention/division.hpp"

#include "attention/row_spans.hpp"
#include "base/checked.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace maskwise {
namespace {

// With 4 equal items per worker, a last item that runs alone takes a fifth of the total time.
constexpr std::int64_t items_per_worker = 4;
// Items with fewer key tiles spend too much time on their softmax state. With more than few_workers
// workers, half of this minimum is better than idle workers.
constexpr std::int64_t least_tiles = 8;
constexpr int few_workers = 8;
// Items are ordered by size class, not by exact size.
constexpr std::int64_t classes = 16;
// With this many row tiles per worker, even a heavy last tile adds little, so counting costs more
// than it saves.
constexpr std::int64_t many_row_tiles = 8, many_beyond_few_workers = 32;
// Cost of loading a row tile's queries and storing its rows of dst, in key tiles.
constexpr std::int64_t fixed_cost = 1;

std::int64_t padded(std::int64_t bytes) {
    return static_cast<std::int64_t>(padded_bytes(static_cast<std::size_t>(bytes)));
}

std::int64_t rounded_up(std::int64_t count, std::int64_t by) {
    return (count + by - 1) / by;
}

std::int64_t least_of_item(int workers) {
    return workers > few_workers ? least_tiles / 2 : least_tiles;
}

// Returns the slice size, in key tiles, with the shortest estimated time if all row tiles cost the
// same. Each slice costs half a key tile more. Each merge costs a tenth of a key tile.
std::int64_t most_of_equal(std::int64_t tiles, std::int64_t row_tiles, int workers) {
    const auto time_of = [&](std::int64_t parts) {
        return rounded_up(row_tiles * parts, workers) * (10 * rounded_up(tiles, parts) + 5) +
               (parts > 1 ? rounded_up(row_tiles, workers) * parts : 0);
    };
    std::int64_t best = 1;
    for (std::int64_t parts = 2;
         parts <= tiles / least_of_item(workers) && row_tiles * parts <= workers * items_per_worker;
         ++parts)
        if (time_of(parts) < time_of(best)) best = parts;
    return rounded_up(tiles, best);
}

bool has_few_row_tiles(std::int64_t row_tiles, int workers) {
    return row_tiles / workers < (workers > few_workers ? many_beyond_few_workers : many_row_tiles);
}

// Returns an upper bound on an item's key tiles.
std::int64_t most_of_item(const row_costs& costs, int workers) {
    const auto [least, most] = std::minmax_element(costs.tiles, costs.tiles + costs.unlike());
    if (*least == *most)
        return std::max(most_of_equal(*most, costs.heads * costs.row_tiles, workers),
                        least_of_item(workers));
    const std::int64_t sum =
        std::accumulate(costs.tiles, costs.tiles + costs.unlike(), costs.unlike() * fixed_cost);
    return std::max(rounded_up(sum * costs.heads_alike, workers * items_per_worker),
                    least_of_item(workers));
}

// The slices of a row tile. Size class 0 has the largest items.
struct row_cut {
    row_cut(std::int64_t tiles, std::int64_t most)
        : parts(tiles > most ? rounded_up(tiles, most) : 1),
          size_class(classes - (parts > 1 ? rounded_up(tiles, parts) : tiles) * classes / most) {}

    std::int64_t parts, size_class;
};

using class_places = std::array<std::int64_t, classes + 1>;

// Returns the index of the first item of each class.
class_places places_of(const row_costs& costs, std::int64_t most) {
    class_places places{};
    for (std::int64_t i = 0; i < costs.unlike(); ++i) {
        const row_cut cut(costs.tiles[i], most);
        places[static_cast<std::size_t>(cut.size_class)] += cut.parts * costs.heads_alike;
    }
    std::exclusive_scan(places.begin(), places.end(), places.begin(), std::int64_t{0});
    return places;
}

void add_row_tile(std::int64_t row_tile, const row_cut& cut, class_places& places,
                  work_list& list) {
    work_item item{row_tile, 0, cut.parts, list.states};
    if (cut.parts > 1) {
        list.shared[list.shared_count++] = item;
        list.states += cut.parts;
    }
    std::int64_t& place = places[static_cast<std::size_t>(cut.size_class)];
    for (; item.part < cut.parts; ++item.part, ++item.state) list.items[place++] = item;
    list.count += cut.parts;
}

} // namespace

std::int64_t division::bytes() const {
    const wide total = wide{workers} * worker_bytes + wide{most_states} * state_bytes +
                       highest_bytes + norm_bytes + map_bytes + cost_bytes + list_bytes +
                       static_cast<std::int64_t>(scratch_alignment);
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    return total > most ? most : static_cast<std::int64_t>(total);
}

division divide(const tile_plan& plan, int threads) {
    division split;
    split.threads = threads;
    split.row_tiles = plan.heads * plan.row_tiles();
    split.by_cost = threads > 1 &&
                    !plan.retains_scores() && // retained scores fix the summation order
                    plan.key_tiles() >= 2 * least_of_item(threads) &&
                    has_few_row_tiles(split.row_tiles, threads);
    std::int64_t items = split.row_tiles;
    if (split.by_cost) {
        const std::int64_t wanted = threads * items_per_worker;
        const std::int64_t parts = rounded_up(plan.key_tiles(), least_of_item(threads));
        items = split.most_items = std::min(items + wanted, items * parts);
        split.most_states = std::min(split.most_items, 2 * wanted);
        split.cost_bytes = padded(split.row_tiles * std::int64_t{sizeof(std::int64_t)});
        split.list_bytes =
            padded((split.most_items + split.row_tiles) * std::int64_t{sizeof(work_item)});
    }
    split.workers = static_cast<int>(std::clamp<std::int64_t>(items, 1, threads));
    constexpr std::int64_t float_bytes = sizeof(float);
    split.highest_bytes = padded(plan.bias_mask.tiles() * float_bytes);
    if (plan.can_bound_scores)
        split.norm_bytes = padded(plan.heads * plan.key_tiles() * float_bytes);
    split.map_bytes = padded(plan.mask.tiles() + plan.bias_mask.tiles());
    split.worker_bytes = padded(plan.worker.floats * float_bytes);
    split.state_bytes = padded(plan.state_floats() * float_bytes);
    return split;
}

// Each index of the first dimension of `outer` is one sequence. If `outer` has only one dimension,
// each head is a sequence, so rules may differ between heads. Slopes are per head.
std::int64_t heads_alike(const tile_plan& plan, const mask_rules* rules) {
    const int last = plan.outer.rank() - 1;
    if (last < 0 || (last == 0 && rules != nullptr && !is_uniform(*rules)) || has_slopes(rules))
        return 1;
    for (const mask_layout* layout : {&plan.mask, &plan.bias_mask})
        if (layout->heads != 0 && layout->outer_tiles[last] != 0) return 1;
    return plan.outer[last];
}

// A mask with fewer rows than a tile, for example if broadcast along rows, is too small to split.
std::int64_t parts_of_map(const mask_layout& layout, int workers) {
    const std::int64_t row_tiles = layout.heads * layout.row_tiles;
    if (layout.rows < layout.tile_rows || workers == 1) return 1;
    return std::clamp<std::int64_t>(workers * items_per_worker / row_tiles, 1,
                                    std::max<std::int64_t>(1, layout.key_tiles / least_tiles));
}

// Lists the last rows first, because they have the most keys under a causal mask.
bool list_work(const row_costs& costs, int workers, work_list& list) {
    const std::int64_t most = most_of_item(costs, workers);
    if (*std::max_element(costs.tiles, costs.tiles + costs.unlike()) <= most / 2) return false;
    auto places = places_of(costs, most);
    for (std::int64_t head = 0; head < costs.heads; ++head) {
        const std::int64_t* const tiles = costs.of_head(head);
        for (std::int64_t number = costs.row_tiles; number-- > 0;)
            add_row_tile(head * costs.row_tiles + number, {tiles[number], most}, places, list);
    }
    return true;
}

} // namespace maskwise
