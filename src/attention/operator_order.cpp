// Attention in the order of separate operators. The worker retains all scores of a row tile. The
// softmax subtracts the final maximum, divides by the sum and rounds the weights. Then the worker
// adds weighted values in key order.

#include "attention/tile_worker.hpp"

#include <algorithm>
#include <memory>

namespace maskwise {

float* tile_worker::scores_of(const panel_rows& panel, const key_tile& keys) const {
    const std::int64_t tile = panel.number * plan_.key_tiles() + keys.number;
    return operands_.part(plan_.worker.scores) + tile * plan_.tile_keys * plan_.panel;
}

void tile_worker::retain_scores(const key_tile& keys) {
    const strided_matrix key = operands_.keys_of(keys);
    operands_.for_each_panel([&](const panel_rows& panel) {
        const panel_scores tile_scores =
            operands_.multiply(panel, keys, key, scores_of(panel, keys));
        if (tile_scores.keys != 0)
            kernels_.apply_mask(tile_scores, state_of(panel, worker_state()).maximum);
    });
}

// Each score becomes the fill, plus the bias if keys.needs_bias.
void tile_worker::fill_scores(const key_tile& keys) {
    if (keys.needs_bias) return retain_scores(keys);
    operands_.for_each_panel([&](const panel_rows& panel) {
        std::fill_n(scores_of(panel, keys), keys.keys * plan_.panel, numbers_.fill);
        kernels_.apply_mask(operands_.scores_of(panel, keys, scores_of(panel, keys)),
                            state_of(panel, worker_state()).maximum);
    });
}

// Tiles whose weights are all 0 become `skip`.
void tile_worker::retain_deferred(const tile_range& range, tile_action action, key_tile* tiles) {
    const float* const maxima = worker_state();
    for (std::int64_t number = range.first; number < range.last; ++number) {
        key_tile& keys = tiles[number];
        if (keys.action != action) continue;
        if (!operands_.may_count(keys, maxima))
            keys.action = tile_action::skip;
        else if (action == tile_action::fill)
            fill_scores(keys);
        else
            retain_scores(keys);
    }
}

void tile_worker::add_weighted_values(const tile_range& range, const key_tile* tiles) {
    const auto for_each_score = [&](auto visit) {
        for (std::int64_t number = range.first; number < range.last; ++number) {
            const key_tile& keys = tiles[number];
            if (keys.action == tile_action::skip) continue;
            visit(keys);
        }
    };
    for_each_score([&](const key_tile& keys) {
        operands_.for_each_panel([&](const panel_rows& panel) {
            kernels_.exponentiate(operands_.scores_of(panel, keys, scores_of(panel, keys)),
                                  state_of(panel, worker_state()),
                                  plan_.desc.order == attention_order::fixed);
        });
    });
    float* const factors = operands_.part(plan_.worker.factor);
    for (std::int64_t q = 0; q < operands_.rows().rows; ++q) {
        const float sum = worker_state()[plan_.tile_rows + q];
        factors[q] = sum == 0 ? 0 : 1 / sum;
    }
    for_each_score([&](const key_tile& keys) {
        const strided_matrix value = operands_.values_of(keys);
        operands_.for_each_panel([&](const panel_rows& panel) {
            const panel_scores weights = operands_.scores_of(panel, keys, scores_of(panel, keys));
            if (weights.keys == 0) return;
            kernels_.normalize(weights, factors + panel.number * plan_.panel, plan_.weights_type);
            operands_.add_values(panel, keys, weights, value,
                                 {state_of(panel, worker_state()).values, nullptr, true});
        });
    });
}

void tile_worker::run_by_operators(const tile_range& range) {
    operands_.bind(range.head, range.row_tile);
    begin(worker_state());
    auto* const tiles = reinterpret_cast<key_tile*>(operands_.part(plan_.worker.tiles));
    for (std::int64_t number = range.first; number < range.last; ++number) {
        const key_tile& keys = *std::construct_at(tiles + number, operands_.tile(number));
        if (keys.action == tile_action::compute) retain_scores(keys);
    }
    retain_deferred(range, tile_action::defer, tiles);
    retain_deferred(range, tile_action::fill, tiles);
    if (plan_.sinks.column_count != 0) merge_sinks(worker_state(), 0);
    add_weighted_values(range, tiles);
    write(worker_state(), true);
}

} // namespace maskwise
