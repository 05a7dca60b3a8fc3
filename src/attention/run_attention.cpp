#include "attention/run_attention.hpp"

#include "attention/attention_tile.hpp"
#include "attention/kept_maps.hpp"
#include "base/checked.hpp"
#include "exec/parts.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>

namespace maskwise {
namespace {

// Keys of one row tile are shared out, so that there are a few items of work for each thread, but
// no item is smaller than this.
constexpr std::int64_t items_per_thread = 4, least_tiles_of_item = 8;
constexpr auto padding = static_cast<std::int64_t>(scratch_alignment);

std::int64_t padded(std::int64_t bytes) {
    return static_cast<std::int64_t>(padded_bytes(static_cast<std::size_t>(bytes)));
}

// How an execution is divided, and its scratch: the maps of cond and bias, the workers, and the
// states of row tiles of which the keys are shared out.
struct division {
    int workers = 1;
    std::int64_t splits = 1; // of the keys of each row tile
    std::int64_t items = 0;
    std::int64_t highest_bytes = 0, norm_bytes = 0, map_bytes = 0, worker_bytes = 0,
                 state_bytes = 0;

    // With what aligning takes; where 64 bits do not hold them, a number that no machine has.
    std::int64_t bytes() const {
        const wide all = wide{workers} * worker_bytes + wide{splits > 1 ? items : 0} * state_bytes +
                         highest_bytes + norm_bytes + map_bytes + padding;
        constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
        return all > most ? most : static_cast<std::int64_t>(all);
    }
};

division divide(const attention_data& plan, int threads) {
    division made;
    const std::int64_t row_tiles = plan.heads * plan.row_tiles();
    const std::int64_t wanted = threads > 1 ? threads * items_per_thread : 1;
    const std::int64_t most = std::max<std::int64_t>(1, plan.key_tiles() / least_tiles_of_item);
    if (!plan.by_operators()) // which adds the values of all keys in one order
        made.splits = std::clamp<std::int64_t>(
            (wanted + row_tiles - 1) / std::max<std::int64_t>(1, row_tiles), 1, most); // speed
    made.items = row_tiles * made.splits;
    made.workers = static_cast<int>(std::clamp<std::int64_t>(made.items, 1, threads));
    constexpr std::int64_t float_bytes = sizeof(float);
    made.highest_bytes = padded(plan.bias_mask.tiles() * float_bytes);
    if (plan.bounds_scores) made.norm_bytes = padded(plan.heads * plan.key_tiles() * float_bytes);
    made.map_bytes = padded(plan.mask.tiles() + plan.bias_mask.tiles());
    made.worker_bytes = padded(plan.worker.floats * float_bytes);
    made.state_bytes = padded(plan.state_floats() * float_bytes);
    return made;
}

void make_room(std::unique_ptr<attention_scratch>& scratch, std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    if (scratch && scratch->size >= size) return;
    scratch = nullptr; // before there is more
    auto made = std::make_unique<attention_scratch>();
    made->bytes = std::make_unique_for_overwrite<std::byte[]>(size);
    made->size = size;
    scratch = std::move(made);
}

// A thread of workers may multiply; what it was before comes back, also behind an exception.
class product_scope {
public:
    explicit product_scope(const attention_data& plan)
        : kernels_(plan.kernels->attention), enters_(plan.in_pairs && kernels_.enter != nullptr) {
        if (enters_) kernels_.enter();
    }
    product_scope(const product_scope&) = delete;
    product_scope& operator=(const product_scope&) = delete;
    ~product_scope() {
        if (enters_) kernels_.leave();
    }

private:
    const attention_kernels& kernels_;
    bool enters_;
};

class attention_run {
public:
    attention_run(const attention_data& plan, const attention_operands& at,
                  const attention_numbers& numbers, const parallel_loop* loop, const division& how,
                  std::byte* scratch)
        : plan_(plan), at_(at), numbers_(numbers), loop_(loop), how_(how),
          highest_(reinterpret_cast<float*>(scratch)),
          key_norms_(reinterpret_cast<float*>(scratch + how.highest_bytes)),
          cond_map_(reinterpret_cast<tile_mask*>(scratch + how.highest_bytes + how.norm_bytes)),
          bias_map_(cond_map_ + plan.mask.tiles()),
          workers_(scratch + how.highest_bytes + how.norm_bytes + how.map_bytes),
          states_(workers_ + how.workers * how.worker_bytes) {}

    void run() {
        find_maps();
        share_out(how_.items,
                  [&](tile_worker& worker, std::int64_t item) { run_item(worker, item); });
        if (how_.splits > 1)
            share_out(how_.items / how_.splits, [&](tile_worker& worker, std::int64_t row_tile) {
                finish_row_tile(worker, row_tile);
            });
    }

    tile_counts count() {
        find_maps();
        tile_counts counts;
        tile_operands operands(plan_, at_, numbers_, maps_, reinterpret_cast<float*>(workers_));
        for (std::int64_t i = 0; i < plan_.heads * plan_.row_tiles(); ++i) {
            operands.bind(i / plan_.row_tiles(), i % plan_.row_tiles());
            for (std::int64_t number = 0; number < plan_.key_tiles(); ++number)
                count(operands.tile(number), counts);
        }
        return counts;
    }

private:
    void find_maps() {
        maps_.cond = find_map(plan_.mask, at_.cond, {cond_map_, nullptr}).tiles;
        const map_memory bias = find_map(plan_.bias_mask, at_.bias, {bias_map_, highest_});
        maps_.bias = bias.tiles;
        maps_.highest_bias = bias.highest;
        if (!plan_.bounds_scores) return;
        std::fill_n(key_norms_, plan_.heads * plan_.key_tiles(), unknown_norm);
        maps_.key_norms = key_norms_;
    }

    static void count(const key_tile& keys, tile_counts& counts) {
        const bool is_masked = keys.is_crossed || keys.is_selected || keys.is_biased;
        ++counts.all;
        if (keys.action == tile_action::postpone)
            ++counts.deferred;
        else if (keys.action != tile_action::compute)
            ++counts.skipped;
        else
            ++(is_masked ? counts.mixed : counts.full);
    }

    float* state_of(std::int64_t item) const {
        return reinterpret_cast<float*>(states_ + item * how_.state_bytes);
    }

    // Each worker takes the next item as long as there is one.
    template <class Work>
    void share_out(std::int64_t items, const Work& work) const {
        std::atomic<std::int64_t> next = 0;
        const auto run_worker = [&](std::int64_t number) {
            const product_scope scope(plan_);
            auto* const scratch = workers_ + number * how_.worker_bytes;
            tile_worker worker(plan_, at_, numbers_, maps_, reinterpret_cast<float*>(scratch));
            for (std::int64_t item = next++; item < items; item = next++) work(worker, item);
            plan_.computed_tiles.fetch_add(worker.computed_tiles(), std::memory_order_relaxed);
        };
        run_in_parts(std::min<std::int64_t>(how_.workers, items), run_worker, loop_);
    }

    void fill_map(const mask_layout& layout, const void* mask, const map_memory& to) const {
        share_out(layout.heads * layout.row_tiles, [&](tile_worker&, std::int64_t number) {
            const std::int64_t place = number * layout.key_tiles;
            map_row_tile(layout, plan_.kernels->attention, mask, number, to.tiles + place,
                         to.highest == nullptr ? nullptr : to.highest + place);
        });
    }

    // The map of a mask: kept from before, to be kept, or in this execution's scratch memory.
    map_memory find_map(const mask_layout& layout, const void* mask, const map_memory& own) const {
        if (layout.heads == 0) return {};
        mask_maps_data* const kept = at_.maps == nullptr ? nullptr : &at_.maps->data();
        if (kept != nullptr)
            if (kept_map* const found = kept->find(mask, layout)) return found->memory();
        if (kept == nullptr || kept->is_full()) {
            fill_map(layout, mask, own);
            return own;
        }
        auto made = std::make_unique<kept_map>(mask, layout);
        fill_map(layout, mask, made->memory());
        return kept->keep(std::move(made))->memory();
    }

    // The last rows first: below a causal boundary they have most keys, and a thread that begins
    // one at the end would keep all others waiting.
    tile_range range_of(std::int64_t item) const {
        const std::int64_t row_tiles = plan_.row_tiles(), tiles = plan_.key_tiles();
        const std::int64_t row_tile = item / how_.splits, split = item % how_.splits;
        const std::int64_t each = tiles / how_.splits, rest = tiles % how_.splits;
        const auto first_of = [&](std::int64_t s) { return s * each + std::min(s, rest); };
        return {row_tile / row_tiles, row_tiles - 1 - row_tile % row_tiles, first_of(split),
                first_of(split + 1)};
    }

    void run_item(tile_worker& worker, std::int64_t item) const {
        const tile_range range = range_of(item);
        if (plan_.by_operators()) return worker.run_by_operators(range);
        if (how_.splits > 1) return worker.run(range, state_of(item));
        worker.run(range, worker.own_state());
        worker.finish(range, worker.own_state());
    }

    void finish_row_tile(tile_worker& worker, std::int64_t row_tile) const {
        const std::int64_t first = row_tile * how_.splits;
        tile_range range = range_of(first);
        range.last = plan_.key_tiles();
        for (std::int64_t split = 1; split < how_.splits; ++split)
            worker.merge(range, state_of(first), state_of(first + split));
        worker.finish(range, state_of(first));
    }

    const attention_data& plan_;
    const attention_operands& at_;
    const attention_numbers& numbers_;
    const parallel_loop* loop_;
    const division& how_;
    float* highest_; // of the tiles of bias_map_
    float* key_norms_;
    tile_mask* cond_map_;
    tile_mask* bias_map_;
    std::byte* workers_;
    std::byte* states_;
    tile_maps maps_;
};

} // namespace

double products_of(const attention_data& plan) {
    return static_cast<double>(plan.heads) * static_cast<double>(plan.rows) *
           static_cast<double>(plan.keys) * static_cast<double>(plan.depth + plan.columns);
}

bool may_use_threads(const attention_data& plan) {
    return products_of(plan) >= parallel_from_products;
}

int threads_for(const attention_data& plan) {
    return may_use_threads(plan) ? available_threads() : 1;
}

std::int64_t scratch_bytes(const attention_data& plan, int threads) {
    return divide(plan, std::max(1, threads)).bytes();
}

void run_attention(const attention_data& plan, const attention_operands& at,
                   const attention_numbers& numbers, const parallel_loop* loop,
                   std::unique_ptr<attention_scratch>& memory) {
    const bool writes = plan.columns != 0 || plan.statistics.column_count != 0;
    if (plan.heads == 0 || plan.rows == 0 || !writes) return;
    const division how = divide(plan, loop == nullptr ? threads_for(plan) : loop->threads);
    make_room(memory, how.bytes());
    attention_run(plan, at, numbers, loop, how, first_aligned(memory->bytes.get())).run();
}

tile_counts count_tiles(const attention_data& plan, const attention_operands& at) {
    if (plan.heads == 0 || plan.rows == 0) return {};
    const parallel_loop alone{1, {}};
    std::unique_ptr<attention_scratch> memory;
    const division how = divide(plan, 1);
    make_room(memory, how.bytes());
    return attention_run(plan, at, plan.numbers, &alone, how, first_aligned(memory->bytes.get()))
        .count();
}

void run_attention(const attention_data& plan, const attention_operands& at,
                   const attention_numbers& numbers, const parallel_loop* loop) {
    auto memory = plan.scratch.take();
    run_attention(plan, at, numbers, loop, memory);
    plan.scratch.give_back(std::move(memory));
}

} // namespace maskwise
