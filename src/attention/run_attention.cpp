#include "attention/run_attention.hpp"

#include "attention/find_map.hpp"
#include "attention/share_items.hpp"
#include "attention/tile_worker.hpp"
#include "exec/parts.hpp"

#include <algorithm>

namespace maskwise {
namespace {

// Row tiles whose computed key tiles a worker counts in one step.
constexpr std::int64_t row_tiles_at_once = 4;

class attention_run {
public:
    attention_run(const tile_plan& plan, const attention_operands& addresses,
                  const attention_numbers& numbers, const parallel_loop* loop,
                  const division& split, std::byte* scratch)
        : plan_(plan), addresses_(addresses), numbers_(numbers), loop_(loop),
          division_(split), maps_memory_{reinterpret_cast<float*>(scratch),
                                         reinterpret_cast<float*>(scratch + split.highest_bytes),
                                         reinterpret_cast<tile_mask*>(
                                             scratch + split.highest_bytes + split.norm_bytes)},
          costs_(scratch + split.highest_bytes + split.norm_bytes + split.map_bytes),
          workers_(costs_ + split.cost_bytes + split.list_bytes),
          states_(workers_ + split.workers * split.worker_bytes) {}

    void run() {
        find_maps(false);
        if (division_.by_cost) list_items();
        share_out(is_listed_ ? list_.count : division_.row_tiles,
                  [&](tile_worker& worker, std::int64_t item) { run_item(worker, item); });
        share_out(list_.shared_count,
                  [&](tile_worker& worker, std::int64_t item) { finish_shared(worker, item); });
    }

    tile_counts count() {
        find_maps(true);
        tile_counts counts;
        tile_operands operands(plan_, addresses_, numbers_, maps_,
                               reinterpret_cast<float*>(workers_));
        for (std::int64_t i = 0; i < plan_.heads * plan_.row_tiles(); ++i) {
            operands.bind(i / plan_.row_tiles(), i % plan_.row_tiles());
            for (std::int64_t number = 0; number < plan_.key_tiles(); ++number)
                count(operands.tile(number), counts);
        }
        return counts;
    }

private:
    void find_maps(bool fills_all) {
        maps_ = maskwise::find_maps(
            plan_, addresses_, maps_memory_, division_.workers,
            [&](const mask_layout& layout, std::int64_t items, const auto& work) {
                if (fills_all || !is_filled_by_row_tiles(layout))
                    share_out(items, [&](tile_worker&, std::int64_t item) { work(item); });
            });
    }

    // Whether each row tile fills its part of the map right before it runs, and so finds the mask
    // in the cache. No other row tile may need the part.
    bool is_filled_by_row_tiles(const mask_layout& layout) const {
        return layout.heads == plan_.heads && layout.row_tiles == plan_.row_tiles() &&
               addresses_.maps == nullptr && !division_.by_cost;
    }

    void fill_part(const mask_layout& layout, const void* mask, const map_memory& map,
                   std::int64_t number) const {
        if (!is_filled_by_row_tiles(layout)) return;
        const std::int64_t first = number * layout.key_tiles;
        map_row_tile(layout, plan_.kernels->attention, mask, number, map.tiles + first,
                     map.highest == nullptr ? nullptr : map.highest + first);
    }

    static void count(const key_tile& keys, tile_counts& counts) {
        const bool is_masked = keys.needs_spans || keys.needs_cond || keys.needs_bias;
        ++counts.all;
        if (keys.action == tile_action::defer)
            ++counts.deferred;
        else if (keys.action != tile_action::compute)
            ++counts.skipped;
        else
            ++(is_masked ? counts.mixed : counts.full);
    }

    float* state_at(std::int64_t index) const {
        return reinterpret_cast<float*>(states_ + index * division_.state_bytes);
    }

    // Counts the computed key tiles of each row tile, once for heads that share a mask.
    void list_items() {
        auto* const tiles = reinterpret_cast<std::int64_t*>(costs_);
        const std::int64_t alike = heads_alike(plan_, addresses_.rules);
        const std::int64_t row_tiles = plan_.row_tiles();
        const std::int64_t count = plan_.heads / alike * row_tiles;
        const auto count_some = [&](tile_worker& worker, std::int64_t part) {
            const std::int64_t first = part * row_tiles_at_once;
            for (std::int64_t i = first; i < std::min(count, first + row_tiles_at_once); ++i)
                tiles[i] = worker.count_computed(whole(i / row_tiles * alike, i % row_tiles));
        };
        share_out((count + row_tiles_at_once - 1) / row_tiles_at_once, count_some);
        list_.items = reinterpret_cast<work_item*>(costs_ + division_.cost_bytes);
        list_.shared = list_.items + division_.most_items;
        is_listed_ = list_work({plan_.heads, row_tiles, alike, tiles}, division_.threads, list_);
    }

    template <class Work>
    void share_out(std::int64_t items, const Work& work) const {
        const auto make_worker = [&](std::int64_t number) {
            auto* const scratch = workers_ + number * division_.worker_bytes;
            return tile_worker(plan_, addresses_, numbers_, maps_,
                               reinterpret_cast<float*>(scratch));
        };
        share_items(
            plan_, items, division_.workers, loop_, make_worker,
            [&](tile_worker& worker, std::int64_t item, std::int64_t) { work(worker, item); });
    }

    tile_range whole(std::int64_t head, std::int64_t row_tile) const {
        return {head, row_tile, 0, plan_.key_tiles()};
    }

    // Without a list, the last rows of a head come first.
    tile_range range_of(std::int64_t item) const {
        const std::int64_t row_tiles = plan_.row_tiles();
        const std::int64_t head = item / row_tiles, number = item % row_tiles;
        if (!is_listed_) return whole(head, row_tiles - 1 - number);
        const work_item& work = list_.items[item];
        tile_range range = whole(work.row_tile / row_tiles, work.row_tile % row_tiles);
        range.part = work.part;
        range.parts = work.parts;
        return range;
    }

    void run_item(tile_worker& worker, std::int64_t item) const {
        const tile_range range = range_of(item);
        const std::int64_t number = range.head * plan_.row_tiles() + range.row_tile;
        fill_part(plan_.mask, addresses_.cond, {maps_memory_.tiles, nullptr}, number);
        fill_part(plan_.bias_mask, addresses_.bias,
                  {maps_memory_.tiles + plan_.mask.tiles(), maps_memory_.highest}, number);
        if (plan_.retains_scores()) return worker.run_by_operators(range);
        if (range.parts > 1) return worker.run(range, state_at(list_.items[item].state));
        worker.run(range, worker.worker_state());
        worker.finish(range, worker.worker_state());
    }

    void finish_shared(tile_worker& worker, std::int64_t item) const {
        const work_item& first = list_.shared[item];
        const tile_range range =
            whole(first.row_tile / plan_.row_tiles(), first.row_tile % plan_.row_tiles());
        for (std::int64_t part = 1; part < first.parts; ++part)
            worker.merge(range, state_at(first.state), state_at(first.state + part));
        worker.finish(range, state_at(first.state));
    }

    const tile_plan& plan_;
    const attention_operands& addresses_;
    const attention_numbers& numbers_;
    const parallel_loop* loop_;
    const division& division_;
    maps_memory maps_memory_;
    std::byte* costs_;
    std::byte* workers_;
    std::byte* states_;
    tile_maps maps_;
    work_list list_;
    bool is_listed_ = false;
};

bool writes_nothing(const tile_plan& plan) {
    const bool has_columns = plan.columns != 0 || plan.statistics.column_count != 0;
    return plan.heads == 0 || plan.rows == 0 || !has_columns;
}

// The number of multiplications of unmasked attention.
double products_of(const tile_plan& plan) {
    return static_cast<double>(plan.heads) * static_cast<double>(plan.rows) *
           static_cast<double>(plan.keys) * static_cast<double>(plan.depth + plan.columns);
}

} // namespace

const parallel_loop* loop_for(const tile_plan& plan, const parallel_loop* loop) {
    // Never freed, because threads may outlive static objects.
    static const auto* const alone = new parallel_loop(calling_thread());
    return loop != nullptr && products_of(plan) < host_parallel_from_products ? alone : loop;
}

bool may_use_threads(const tile_plan& plan) {
    return products_of(plan) >= parallel_from_products;
}

int threads_for(const tile_plan& plan) {
    return may_use_threads(plan) ? available_threads() : 1;
}

std::int64_t scratch_bytes(const tile_plan& plan, int threads) {
    return divide(plan, std::max(1, threads)).bytes();
}

void run_attention(const tile_plan& plan, const attention_operands& addresses,
                   const attention_numbers& numbers, const parallel_loop* loop,
                   scratch_pool<scratch_memory>* pool) {
    if (writes_nothing(plan)) return;
    const division split = divide(plan, loop == nullptr ? threads_for(plan) : loop->threads);
    with_scratch(pool == nullptr ? plan.scratch : *pool, split.bytes(), [&](std::byte* scratch) {
        attention_run(plan, addresses, numbers, loop, split, scratch).run();
    });
}

tile_counts count_tiles(const tile_plan& plan, const attention_operands& addresses) {
    if (writes_nothing(plan)) return {};
    const parallel_loop alone = calling_thread();
    scratch_memory memory;
    const division split = divide(plan, 1);
    std::byte* const scratch = memory.reserve(static_cast<std::size_t>(split.bytes()));
    return attention_run(plan, addresses, plan.numbers, &alone, split, scratch).count();
}

} // namespace maskwise
