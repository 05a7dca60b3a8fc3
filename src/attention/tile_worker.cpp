#include "attention/tile_worker.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace maskwise {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

} // namespace

panel_state tile_worker::state_of(const panel_rows& panel, float* state) const {
    const std::int64_t first_row = panel.number * plan_.panel;
    return {state + first_row, state + plan_.tile_rows + first_row,
            state + 2 * plan_.tile_rows + first_row * plan_.columns};
}

void tile_worker::begin(float* state) const {
    std::fill_n(state, plan_.tile_rows, minus_infinity);
    std::fill_n(state + plan_.tile_rows, plan_.tile_rows * (1 + plan_.columns), 0.0F);
}

std::int64_t tile_worker::count_computed(const tile_range& range) {
    operands_.bind(range.head, range.row_tile);
    return operands_.count_computed(operands_.kept_part(range));
}

void tile_worker::run(const tile_range& range, float* state) {
    operands_.bind(range.head, range.row_tile);
    begin(state);
    const tile_range kept = operands_.kept_part(range);
    for (std::int64_t number = kept.first; number < kept.last; ++number) {
        const key_tile keys = operands_.tile(number);
        if (keys.action == tile_action::compute) run_key_tile(keys, state);
    }
}

void tile_worker::run_key_tile(const key_tile& keys, float* state) {
    const strided_matrix key = operands_.keys_of(keys), value = operands_.values_of(keys);
    float* const scores = operands_.part(plan_.worker.scores);
    float* const factor = operands_.part(plan_.worker.factor);
    operands_.for_each_panel([&](const panel_rows& panel) {
        const panel_scores tile_scores = operands_.multiply(panel, keys, key, scores);
        if (tile_scores.keys == 0) return;
        const panel_state panel_sums = state_of(panel, state);
        kernels_.softmax_update(tile_scores, panel_sums, factor);
        operands_.add_values(panel, keys, tile_scores, value, {panel_sums.values, factor});
    });
}

void tile_worker::run_deferred(const tile_range& range, tile_action action, float* state) {
    for (std::int64_t number = range.first; number < range.last; ++number) {
        const key_tile keys = operands_.tile(number);
        if (keys.action == action && operands_.may_count(keys, state)) run_key_tile(keys, state);
    }
}

// Sums the values of all filled tiles. Returns the number of their keys.
std::int64_t tile_worker::add_filled(const tile_range& range, float* sums) const {
    std::int64_t count = 0;
    std::fill_n(sums, plan_.columns, 0.0F);
    for (std::int64_t number = range.first; number < range.last; ++number) {
        const key_tile keys = operands_.tile(number);
        if (keys.action != tile_action::fill) continue;
        const strided_matrix value = operands_.floats_of_values(keys);
        kernels_.add_rows(value.first, value.row_bytes, keys.keys, plan_.columns, sums);
        count += keys.keys;
    }
    return count;
}

// Returns a state whose queries all share one row of values.
panel_state tile_worker::same_values() const {
    float* const values = operands_.part(plan_.worker.sums);
    return {values + plan_.columns, values + plan_.columns + plan_.panel, values};
}

// A sink is a score whose value row is zeros. With 0 columns, only maxima and sums are merged.
void tile_worker::merge_sinks(float* state, std::int64_t columns) {
    const panel_state sinks = same_values();
    std::fill_n(sinks.values, columns, 0.0F);
    std::fill_n(sinks.sum, plan_.panel, 1.0F);
    operands_.for_each_panel([&](const panel_rows& panel) {
        std::fill_n(sinks.maximum, plan_.panel, minus_infinity);
        for (std::int64_t q = 0; q < panel.queries; ++q)
            sinks.maximum[q] = operands_.sink(panel.first + q);
        kernels_.merge(state_of(panel, state), sinks, 1, columns, panel.queries);
    });
}

// Every key of a filled tile has weight exp(fill), for all queries.
void tile_worker::merge_filled(const tile_range& range, float* state) {
    const key_tile filled{.action = tile_action::fill};
    if (!operands_.may_count(filled, state)) return;
    const panel_state masked = same_values();
    const std::int64_t count = add_filled(range, masked.values);
    if (count == 0) return;
    std::fill_n(masked.maximum, plan_.panel, numbers_.fill);
    std::fill_n(masked.sum, plan_.panel, static_cast<float>(count));
    operands_.for_each_panel([&](const panel_rows& panel) {
        kernels_.merge(state_of(panel, state), masked, 1, plan_.columns, panel.queries);
    });
}

void tile_worker::merge(const tile_range& range, float* state, float* other) {
    operands_.bind(range.head, range.row_tile);
    operands_.for_each_panel([&](const panel_rows& panel) {
        kernels_.merge(state_of(panel, state), state_of(panel, other), plan_.panel, plan_.columns,
                       panel.queries);
    });
}

// If a bias is added to the fill, masked scores differ between keys. A masked tile with a weight is
// then computed like a mixed tile.
void tile_worker::add_rest(const tile_range& range, float* state) {
    if (plan_.sinks.column_count != 0) merge_sinks(state, plan_.columns);
    const bool is_biased = plan_.bias.column_count != 0 || operands_.rows().has_slopes;
    if (is_biased) run_deferred(range, tile_action::defer, state);
    if (operands_.is_masked() && !numbers_.fill_is_minus_infinity()) {
        if (is_biased && plan_.desc.bias_on_fill)
            run_deferred(range, tile_action::fill, state);
        else
            merge_filled(range, state);
    }
}

void tile_worker::finish(const tile_range& range, float* state) {
    add_rest(range, state);
    write(state, false);
}

void tile_worker::write(float* state, bool is_normalized) {
    operands_.for_each_panel([&](const panel_rows& panel) {
        write_panel(panel, state_of(panel, state), is_normalized);
    });
}

// A row without a score above -infinity is 0 if inf_as_zero is set or there are no keys, else NaN.
// A row with a NaN sum is 0 if nan_as_zero is set, else NaN. A NaN sink makes the sum NaN even if
// no tile was computed.
void tile_worker::write_panel(const panel_rows& panel, const panel_state& state,
                              bool is_normalized) {
    float* const factor = operands_.part(plan_.worker.factor);
    const float factor_of_empty_row =
        plan_.desc.inf_as_zero || plan_.keys == 0 ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t q = 0; q < panel.queries; ++q) {
        const bool is_nan = std::isnan(state.sum[q]);
        factor[q] = state.sum[q] == 0                  ? factor_of_empty_row
                    : is_nan && plan_.desc.nan_as_zero ? 0
                    : is_normalized && !is_nan         ? 1
                                                       : 1 / state.sum[q];
    }
    if (plan_.statistics.column_count != 0) write_statistics(panel, state);
    kernels_.store_panel(state.values, factor, panel.queries, plan_.columns,
                         operands_.matrix(plan_.dst, addresses_.dst, panel.first),
                         operands_.part(plan_.worker.work));
}

void tile_worker::write_statistics(const panel_rows& panel, const panel_state& state) const {
    const strided_matrix dst =
        operands_.matrix(plan_.statistics, addresses_.statistics, panel.first);
    const float empty_row = plan_.keys == 0          ? minus_infinity
                            : plan_.desc.inf_as_zero ? 0.0F
                                                     : std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t q = 0; q < panel.queries; ++q) {
        const float value = state.sum[q] == 0
                                ? empty_row
                                : state.maximum[q] + plan_.kernels->rows.log(state.sum[q]);
        std::memcpy(dst.first + q * dst.row_bytes, &value, sizeof value);
    }
}

} // namespace maskwise
