#pragma once

#include "attention/tile_plan.hpp"
#include "exec/parts.hpp"

#include <algorithm>
#include <atomic>

namespace maskwise {

// Prepares this thread for the plan's product kernels (AMX tiles). The destructor restores the
// thread's state.
class product_scope {
public:
    explicit product_scope(const tile_plan& plan)
        : kernels_(*plan.products), enters_(plan.multiplies_by_tiles()) {
        if (enters_) kernels_.begin_products();
    }
    product_scope(const product_scope&) = delete;
    product_scope& operator=(const product_scope&) = delete;
    ~product_scope() {
        if (enters_) kernels_.end_products();
    }

private:
    const attention_kernels& kernels_;
    bool enters_;
};

// Calls work(worker, item, worker's number) for each item on at most `workers` threads. Each thread
// makes its worker by make_worker(number) and takes items until none remains. While many items
// remain, a thread takes up to four at once, because adjacent row tiles use the same keys and
// values. Then the thread adds the worker's computed tiles to plan.computed_tiles. Exceptions of
// `loop` pass through.
template <class MakeWorker, class Work>
void share_items(const tile_plan& plan, std::int64_t items, std::int64_t workers,
                 const parallel_loop* loop, const MakeWorker& make_worker, const Work& work) {
    if (items == 0) return;
    std::atomic<std::int64_t> next = 0;
    const auto run_worker = [&](std::int64_t number) {
        const product_scope scope(plan);
        auto worker = make_worker(number);
        for (std::int64_t first = next; first < items; first = next) {
            const std::int64_t fair_share = (items - first) / workers;
            const std::int64_t last = first + std::clamp<std::int64_t>(fair_share / 16, 1, 4);
            if (!next.compare_exchange_weak(first, last)) continue;
            for (; first < last; ++first) work(worker, first, number);
        }
        plan.computed_tiles.fetch_add(worker.computed_tiles(), std::memory_order_relaxed);
    };
    run_in_parts(std::min(workers, items), run_worker, loop);
}

} // namespace maskwise
