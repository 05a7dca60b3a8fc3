#include "attention/run_attention.hpp"

#include "attention/attention_tile.hpp"
#include "exec/parts.hpp"

#include <algorithm>
#include <atomic>

namespace maskwise {
namespace {

// Below so many multiplications waking another thread costs more than it takes off.
constexpr std::int64_t parallel_from_products = 1 << 19;
// Keys of one row tile are shared out, so that there are a few items of work for each thread, but
// no item is smaller than this.
constexpr std::int64_t items_per_thread = 4, least_tiles_of_item = 8;

// How an execution is divided, and its scratch: the maps of cond and bias, the workers, and the
// states of row tiles of which the keys are shared out.
struct division {
    int workers = 1;
    std::int64_t splits = 1; // of the keys of each row tile
    std::int64_t items = 0;
    std::size_t map_bytes = 0, worker_bytes = 0, state_bytes = 0;

    std::size_t bytes() const {
        const auto states = splits > 1 ? static_cast<std::size_t>(items) * state_bytes : 0;
        return map_bytes + static_cast<std::size_t>(workers) * worker_bytes + states;
    }
};

division divide(const attention_data& plan, int threads) {
    division made;
    const std::int64_t row_tiles = plan.heads * plan.row_tiles();
    const std::int64_t wanted = threads > 1 ? threads * items_per_thread : 1;
    const std::int64_t most = std::max<std::int64_t>(1, plan.key_tiles() / least_tiles_of_item);
    made.splits = std::clamp<std::int64_t>(
        (wanted + row_tiles - 1) / std::max<std::int64_t>(1, row_tiles), 1, most);
    made.items = row_tiles * made.splits;
    made.workers = static_cast<int>(std::clamp<std::int64_t>(made.items, 1, threads));
    made.map_bytes =
        padded_bytes(static_cast<std::size_t>(plan.mask.tiles() + plan.bias_mask.tiles()));
    made.worker_bytes = padded_bytes(static_cast<std::size_t>(plan.worker.floats) * sizeof(float));
    made.state_bytes = padded_bytes(static_cast<std::size_t>(plan.state_floats()) * sizeof(float));
    return made;
}

void make_room(std::unique_ptr<attention_scratch>& scratch, std::size_t bytes) {
    if (scratch && scratch->size >= bytes) return;
    scratch = nullptr; // before there is more
    auto made = std::make_unique<attention_scratch>();
    made->bytes = std::make_unique_for_overwrite<std::byte[]>(bytes + scratch_alignment);
    made->size = bytes;
    scratch = std::move(made);
}

class attention_run {
public:
    attention_run(const attention_data& plan, const attention_operands& at,
                  const attention_numbers& numbers, const parallel_loop* loop, const division& how,
                  std::byte* scratch)
        : plan_(plan), at_(at), numbers_(numbers), loop_(loop), how_(how),
          cond_map_(reinterpret_cast<tile_mask*>(scratch)),
          bias_map_(cond_map_ + plan.mask.tiles()), workers_(scratch + how.map_bytes),
          states_(workers_ + static_cast<std::size_t>(how.workers) * how.worker_bytes) {}

    void run() {
        map_mask(plan_.mask, at_.cond, cond_map_);
        map_mask(plan_.bias_mask, at_.bias, bias_map_);
        share_out(how_.items,
                  [&](tile_worker& worker, std::int64_t item) { run_item(worker, item); });
        if (how_.splits > 1)
            share_out(how_.items / how_.splits, [&](tile_worker& worker, std::int64_t row_tile) {
                finish_row_tile(worker, row_tile);
            });
    }

private:
    float* state_of(std::int64_t item) const {
        return reinterpret_cast<float*>(states_ +
                                        static_cast<std::size_t>(item) * how_.state_bytes);
    }

    // Each worker takes the next item as long as there is one.
    template <class Work>
    void share_out(std::int64_t items, const Work& work) const {
        std::atomic<std::int64_t> next = 0;
        const tile_maps maps{plan_.mask.heads > 0 ? cond_map_ : nullptr,
                             plan_.bias_mask.heads > 0 ? bias_map_ : nullptr};
        const auto run_worker = [&](std::int64_t number) {
            auto* const scratch = workers_ + static_cast<std::size_t>(number) * how_.worker_bytes;
            tile_worker worker(plan_, at_, numbers_, maps, reinterpret_cast<float*>(scratch));
            for (std::int64_t item = next++; item < items; item = next++) work(worker, item);
        };
        run_in_parts(std::min<std::int64_t>(how_.workers, items), run_worker, loop_);
    }

    void map_mask(const mask_layout& layout, const void* mask, tile_mask* map) const {
        if (layout.heads == 0) return;
        share_out(layout.heads * layout.row_tiles, [&](tile_worker&, std::int64_t number) {
            map_row_tile(layout, mask, number, map + number * layout.key_tiles);
        });
    }

    // The last rows first: below a causal boundary they have most keys, and a thread that begins
    // one at the end would keep all others waiting.
    tile_range range_of(std::int64_t item) const {
        const std::int64_t row_tiles = plan_.row_tiles(), tiles = plan_.key_tiles();
        const std::int64_t row_tile = item / how_.splits, split = item % how_.splits;
        return {row_tile / row_tiles, row_tiles - 1 - row_tile % row_tiles,
                tiles * split / how_.splits, tiles * (split + 1) / how_.splits};
    }

    void run_item(tile_worker& worker, std::int64_t item) const {
        const tile_range range = range_of(item);
        if (how_.splits > 1) return worker.run(range, state_of(item));
        worker.run(range, worker.own_state());
        worker.finish(range, worker.own_state());
    }

    void finish_row_tile(tile_worker& worker, std::int64_t row_tile) const {
        const std::int64_t first = row_tile * how_.splits;
        const tile_range range = range_of(first);
        for (std::int64_t split = 1; split < how_.splits; ++split)
            worker.merge(range, state_of(first), state_of(first + split));
        worker.finish(range, state_of(first));
    }

    const attention_data& plan_;
    const attention_operands& at_;
    const attention_numbers& numbers_;
    const parallel_loop* loop_;
    const division& how_;
    tile_mask* cond_map_;
    tile_mask* bias_map_;
    std::byte* workers_;
    std::byte* states_;
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
    return static_cast<std::int64_t>(divide(plan, std::max(1, threads)).bytes() +
                                     scratch_alignment);
}

void run_attention(const attention_data& plan, const attention_operands& at,
                   const attention_numbers& numbers, const parallel_loop* loop,
                   std::unique_ptr<attention_scratch>& memory) {
    if (plan.heads == 0 || plan.rows == 0) return;
    const division how = divide(plan, loop == nullptr ? threads_for(plan) : loop->threads);
    make_room(memory, how.bytes());
    attention_run(plan, at, numbers, loop, how, first_aligned(memory->bytes.get())).run();
}

void run_attention(const attention_data& plan, const attention_operands& at,
                   const attention_numbers& numbers, const parallel_loop* loop) {
    auto memory = plan.scratch.take();
    run_attention(plan, at, numbers, loop, memory);
    plan.scratch.give_back(std::move(memory));
}

} // namespace maskwise
