#include "attention/run_gradients.hpp"

#include "attention/find_map.hpp"
#include "attention/gradients_worker.hpp"
#include "attention/run_attention.hpp"
#include "attention/share_items.hpp"
#include "base/checked.hpp"
#include "exec/parts.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace maskwise {
namespace {

constexpr std::int64_t float_bytes = sizeof(float);
constexpr std::int64_t rows_at_once = 64; // cleared in one step

// Offsets, in bytes, in an execution's scratch memory.
class scratch_layout {
public:
    scratch_layout(const gradients_plan& plan, int threads) {
        const tile_plan& attention = *plan.attention;
        const bool has_parts = plan.parts > 1;
        workers = static_cast<int>(std::clamp<std::int64_t>(plan.items(), 1, threads));
        worker_bytes = padded(wide{plan.worker.floats} * float_bytes);
        sums_bytes = padded(wide{plan.sums_floats()} * float_bytes);
        highest = add(wide{attention.bias_mask.tiles()} * float_bytes);
        if (attention.can_bound_scores)
            norms = add(wide{attention.heads} * attention.key_tiles() * float_bytes);
        if (plan.sinks_gradient.column_count != 0)
            sinks = add(wide{attention.heads} * attention.row_tiles() * float_bytes);
        map = add(wide{attention.mask.tiles()} + attention.bias_mask.tiles());
        first_worker = add(wide{workers} * worker_bytes);
        first_sums = add(wide{has_parts ? plan.items() : workers} * sums_bytes);
        add(scratch_alignment);
    }

    int workers = 1;
    std::int64_t highest = 0, norms = 0, sinks = 0, map = 0, first_worker = 0, first_sums = 0;
    std::int64_t worker_bytes = 0, sums_bytes = 0, bytes = 0;

private:
    // Saturates on overflow, so that the allocation fails.
    static std::int64_t padded(wide count) {
        constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
        constexpr auto line = static_cast<std::int64_t>(scratch_alignment);
        count = (count + line - 1) / line * line;
        return count > most ? most : static_cast<std::int64_t>(count);
    }
    std::int64_t add(wide count) {
        const std::int64_t first = bytes;
        bytes = padded(wide{bytes} + padded(count));
        return first;
    }
};

// Sets rows [first, last) of a gradient to 0.
void clear_rows(const tensor_desc& gradient, void* base, std::int64_t first, std::int64_t last) {
    const int rank = gradient.extents.rank();
    const dims rows = without_last(gradient.extents, std::min(rank, 1));
    const std::int64_t columns = rank == 0 ? 1 : gradient.extents[rank - 1];
    const std::int64_t column_bytes = rank == 0 ? 0 : gradient.strides_bytes[rank - 1];
    const float zero = 0;
    for (std::int64_t row = first; row < last; ++row) {
        std::byte* element = static_cast<std::byte*>(base) +
                             offset_of(shape_position(row, rows), gradient.strides_bytes);
        for (std::int64_t c = 0; c < columns; ++c, element += column_bytes)
            std::memcpy(element, &zero, sizeof zero);
    }
}

std::int64_t rows_of(const tensor_desc& gradient) {
    return element_count(without_last(gradient.extents, std::min(gradient.extents.rank(), 1)));
}

class gradients_run {
public:
    gradients_run(const gradients_plan& gradients, const attention_gradients_operands& addresses,
                  const attention_numbers& numbers, const parallel_loop* loop,
                  const scratch_layout& layout, std::byte* scratch)
        : gradients_(gradients), plan_(*gradients.attention), addresses_(addresses),
          numbers_(numbers), loop_(loop), layout_(layout), scratch_(scratch) {}

    void run() {
        find_maps();
        const std::int64_t items = gradients_.items();
        share_out(items, [&](gradients_worker& worker, std::int64_t item, std::int64_t number) {
            const gradient_sums sums = sums_of(gradients_.parts > 1 ? item : number);
            run_item(worker, item, sums);
            if (gradients_.parts == 1) store_keys(worker, item, sums);
        });
        if (gradients_.parts > 1) add_parts();
        if (gradients_.desc.bias_gradient.type != data_type::undef) add_bias_gradients();
        if (gradients_.sinks_gradient.column_count != 0) add_sinks_gradients();
    }

private:
    template <class Part>
    Part* part(std::int64_t first) const {
        return reinterpret_cast<Part*>(scratch_ + first);
    }
    gradient_sums sums_of(std::int64_t number) const {
        auto* const keys = part<float>(layout_.first_sums + number * layout_.sums_bytes);
        return {keys, keys + plan_.key_tiles() * gradients_.tile_floats(plan_.depth)};
    }

    // Calls work(worker, item, number of the worker) for each item.
    template <class Work>
    void share_out(std::int64_t items, const Work& work) const {
        const auto make_worker = [&](std::int64_t number) {
            return gradients_worker(
                gradients_, addresses_, numbers_, maps_,
                part<float>(layout_.first_worker + number * layout_.worker_bytes));
        };
        share_items(plan_, items, layout_.workers, loop_, make_worker, work);
    }

    void find_maps() {
        if (plan_.rows == 0 || plan_.keys == 0) return; // masks may have no elements
        const maps_memory memory{part<float>(layout_.highest), part<float>(layout_.norms),
                                 part<tile_mask>(layout_.map)};
        maps_ = maskwise::find_maps(plan_, addresses_.attention, memory, layout_.workers,
                                    [&](const mask_layout&, std::int64_t items, const auto& work) {
                                        share_out(items, [&](gradients_worker&, std::int64_t item,
                                                             std::int64_t) { work(item); });
                                    });
    }

    // An item's row tiles are every `parts`-th row tile of the group's heads.
    void run_item(gradients_worker& worker, std::int64_t item, const gradient_sums& sums) const {
        std::fill_n(sums.keys, gradients_.sums_floats(), 0.0F);
        const std::int64_t row_tiles = plan_.row_tiles(), parts = gradients_.parts;
        const std::int64_t first_head = item / parts * gradients_.group;
        for (std::int64_t i = item % parts; i < gradients_.group * row_tiles; i += parts) {
            const std::int64_t head = first_head + i / row_tiles;
            const float sink = worker.run(head, i % row_tiles, sums);
            if (gradients_.sinks_gradient.column_count != 0)
                part<float>(layout_.sinks)[head * row_tiles + i % row_tiles] = sink;
        }
    }

    void store_keys(gradients_worker& worker, std::int64_t group, const gradient_sums& sums) const {
        for (std::int64_t tile = 0; tile < plan_.key_tiles(); ++tile)
            worker.store_keys(group * gradients_.group, tile, sums);
    }

    // Adds the sums of each group's items in item order, and stores the totals.
    void add_parts() const {
        const std::int64_t tiles = plan_.key_tiles();
        const auto add_tile = [&](float* sums, const float* partials, std::int64_t tile,
                                  std::int64_t columns) {
            const std::int64_t count = gradients_.tile_floats(columns);
            plan_.products->add_rows(reinterpret_cast<const std::byte*>(partials + tile * count), 0,
                                     1, count, sums + tile * count);
        };
        share_out(gradients_.groups() * tiles,
                  [&](gradients_worker& worker, std::int64_t item, std::int64_t) {
                      const std::int64_t group = item / tiles, tile = item % tiles;
                      const gradient_sums all = sums_of(group * gradients_.parts);
                      for (std::int64_t i = 1; i < gradients_.parts; ++i) {
                          const gradient_sums more = sums_of(group * gradients_.parts + i);
                          add_tile(all.keys, more.keys, tile, plan_.depth);
                          add_tile(all.values, more.values, tile, plan_.columns);
                      }
                      worker.store_keys(group * gradients_.group, tile, all);
                  });
    }

    // A second pass. Row tiles that add to the same rows of the bias gradient are one item, so no
    // two threads write the same element.
    void add_bias_gradients() const {
        const tensor_desc& gradient = gradients_.desc.bias_gradient;
        const std::int64_t rows = rows_of(gradient);
        share_out((rows + rows_at_once - 1) / rows_at_once,
                  [&](gradients_worker&, std::int64_t item, std::int64_t) {
                      const std::int64_t first = item * rows_at_once;
                      clear_rows(gradient, addresses_.bias_gradient, first,
                                 std::min(rows, first + rows_at_once));
                  });
        const mask_layout& layout = plan_.bias_mask;
        const std::int64_t each = layout.row_tiles * layout.key_tiles;
        share_out(layout.heads * layout.row_tiles,
                  [&](gradients_worker& worker, std::int64_t item, std::int64_t) {
                      const std::int64_t bias = item / layout.row_tiles;
                      for (std::int64_t head = 0; head < plan_.heads; ++head) {
                          const shape_position position(head, plan_.outer);
                          if (offset_of(position, layout.outer_tiles) != bias * each) continue;
                          add_bias_gradients(worker, head, item % layout.row_tiles);
                      }
                  });
    }

    void add_bias_gradients(gradients_worker& worker, std::int64_t head,
                            std::int64_t row_tile) const {
        if (plan_.bias_mask.row_tiles == plan_.row_tiles())
            return worker.add_bias_gradients(head, row_tile);
        for (std::int64_t tile = 0; tile < plan_.row_tiles(); ++tile)
            worker.add_bias_gradients(head, tile);
    }

    void add_sinks_gradients() const {
        const tensor_desc& gradient = gradients_.desc.sinks_gradient;
        clear_rows(gradient, addresses_.sinks_gradient, 0, rows_of(gradient));
        const float* next = part<float>(layout_.sinks);
        for (std::int64_t head = 0; head < plan_.heads; ++head) {
            auto* const element =
                static_cast<std::byte*>(addresses_.sinks_gradient) +
                offset_bytes(gradients_.sinks_gradient, shape_position(head, plan_.outer));
            float sum = 0;
            std::memcpy(&sum, element, sizeof sum);
            for (std::int64_t tile = 0; tile < plan_.row_tiles(); ++tile) sum += *next++;
            std::memcpy(element, &sum, sizeof sum);
        }
    }

    const gradients_plan& gradients_;
    const tile_plan& plan_;
    const attention_gradients_operands& addresses_;
    const attention_numbers& numbers_;
    const parallel_loop* loop_;
    const scratch_layout& layout_;
    std::byte* scratch_;
    tile_maps maps_;
};

} // namespace

std::int64_t scratch_bytes(const gradients_plan& plan, int threads) {
    return scratch_layout(plan, std::max(1, threads)).bytes;
}

void run_gradients(const gradients_plan& plan, const attention_gradients_operands& addresses,
                   const attention_numbers& numbers, const parallel_loop* loop) {
    const int threads = loop == nullptr ? threads_for(*plan.attention) : loop->threads;
    const scratch_layout layout(plan, threads);
    with_scratch(plan.scratch, layout.bytes, [&](std::byte* scratch) {
        gradients_run(plan, addresses, numbers, loop, layout, scratch).run();
    });
}

} // namespace maskwise
