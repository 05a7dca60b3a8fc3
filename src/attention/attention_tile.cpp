#include "attention/attention_tile.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

namespace maskwise {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
constexpr std::int64_t float_bytes = sizeof(float);
// Below exp(-88) the kernels' exponential is 0.
constexpr float no_weight = 88;

std::byte* bytes_at(const void* base) {
    return static_cast<std::byte*>(const_cast<void*>(base));
}

strided_matrix turned(strided_matrix matrix) {
    std::swap(matrix.row_bytes, matrix.column_bytes);
    return matrix;
}

} // namespace

void tile_worker::bind(const tile_range& range) {
    position_ = position_of(range.head, plan_.outer);
    first_row_ = range.row_tile * plan_.tile_rows;
    rows_ = std::min(plan_.tile_rows, plan_.rows - first_row_);
    if (maps_.cond != nullptr)
        tiles_.cond = maps_.cond + place_in_map(plan_.mask, position_, range.row_tile);
    if (maps_.bias != nullptr)
        tiles_.bias = maps_.bias + place_in_map(plan_.bias_mask, position_, range.row_tile);
}

template <typename Visit>
void tile_worker::for_each_panel(Visit visit) {
    for (std::int64_t first = 0; first < rows_; first += plan_.panel)
        visit(panel_rows{first / plan_.panel, first_row_ + first,
                         std::min(plan_.panel, rows_ - first)});
}

panel_state tile_worker::state_of(const panel_rows& panel, float* state) const {
    const std::int64_t at = panel.number * plan_.panel;
    return {state + at, state + plan_.tile_rows + at,
            state + 2 * plan_.tile_rows + at * plan_.columns};
}

// The operand's matrix of this head, from a row on.
strided_matrix tile_worker::matrix(const head_operand& operand, const void* base,
                                   std::int64_t row) const {
    return {bytes_at(base) + offset_bytes(operand, position_) + row * operand.row_bytes,
            operand.type, operand.row_bytes, operand.column_bytes};
}

// Rows of a tile as dense f32.
strided_matrix tile_worker::as_floats(const strided_matrix& rows, std::int64_t count,
                                      std::int64_t columns, std::int64_t to) const {
    float* const floats = scratch_ + to;
    kernels_.load_rows(rows, count, columns, floats);
    return {reinterpret_cast<std::byte*>(floats), row_type::f32, columns * float_bytes,
            float_bytes};
}

strided_matrix tile_worker::as_pairs(const strided_matrix& rows, std::int64_t count,
                                     std::int64_t columns, std::int64_t to) const {
    float* const pairs = scratch_ + to;
    kernels_.load_pairs(rows, count, columns, pairs);
    return {reinterpret_cast<std::byte*>(pairs), row_type::f32, columns * float_bytes, float_bytes};
}

// As products take them: f32, or pairs of bf16, which lie there already unless keys are turned.
strided_matrix tile_worker::keys_of_tile(const key_tile& keys) const {
    strided_matrix own = matrix(plan_.key, at_.key, keys.first);
    if (plan_.key_is_turned && plan_.converts_key) {
        const auto convert = plan_.in_pairs ? &tile_worker::as_pairs : &tile_worker::as_floats;
        return turned((this->*convert)(turned(own), plan_.depth, keys.keys, plan_.worker.keys));
    }
    if (plan_.in_pairs)
        own.column_bytes = float_bytes;
    else if (plan_.converts_key)
        return as_floats(own, keys.keys, plan_.depth, plan_.worker.keys);
    return own;
}

strided_matrix tile_worker::floats_of_values(const key_tile& keys) const {
    const strided_matrix own = matrix(plan_.value, at_.value, keys.first);
    if (!plan_.converts_value) return own;
    return as_floats(own, keys.keys, plan_.columns, plan_.worker.values);
}

strided_matrix tile_worker::values_of_tile(const key_tile& keys) const {
    if (!plan_.in_pairs) return floats_of_values(keys);
    return as_pairs(matrix(plan_.value, at_.value, keys.first), keys.keys, plan_.columns,
                    plan_.worker.pairs);
}

// A pair of bf16 moves like one f32, and is not scaled.
void tile_worker::load_queries(const panel_rows& panel) const {
    strided_matrix queries = matrix(plan_.query, at_.query, panel.first);
    if (plan_.in_pairs) {
        queries.type = row_type::f32;
        queries.column_bytes = float_bytes;
    }
    kernels_.load_panel(queries, panel.queries, plan_.depth_steps(),
                        plan_.in_pairs ? 1 : numbers_.scale,
                        scratch_ + plan_.worker.queries + panel.number * plan_.panel * plan_.depth,
                        scratch_ + plan_.worker.work);
}

tile_mask tile_worker::look_up(std::int64_t number, key_tile& keys) const {
    keys.first = number * plan_.tile_keys;
    keys.keys = std::min(plan_.tile_keys, plan_.keys - keys.first);
    tile_mask state = tile_mask::kept;
    if (plan_.is_causal)
        state = causal_tile(numbers_.boundary, first_row_, rows_, keys.first, keys.keys);
    keys.is_crossed = state == tile_mask::mixed;
    keys.is_biased = tiles_.bias != nullptr && tiles_.bias[number] != tile_mask::kept;
    if (tiles_.cond != nullptr && state != tile_mask::masked) {
        keys.is_selected = tiles_.cond[number] == tile_mask::mixed;
        if (tiles_.cond[number] != tile_mask::kept) state = tiles_.cond[number];
    }
    const bool has_fill = state == tile_mask::mixed && !numbers_.fill_is_minus_infinity();
    keys.is_far = keys.is_biased && tiles_.bias[number] == tile_mask::masked &&
                  (!has_fill || (plan_.desc.bias_on_fill && numbers_.fill <= 0));
    return state;
}

void tile_worker::begin(float* state) {
    std::fill_n(state, plan_.tile_rows, minus_infinity);
    std::fill_n(state + plan_.tile_rows, plan_.tile_rows * (1 + plan_.columns), 0.0F);
    for_each_panel([&](const panel_rows& panel) { load_queries(panel); });
}

void tile_worker::run(const tile_range& range, float* state) {
    bind(range);
    begin(state);
    std::int64_t masked_keys = 0;
    bool has_far = false;
    for (std::int64_t number = range.first; number < range.last; ++number) {
        key_tile keys{};
        if (look_up(number, keys) == tile_mask::masked)
            masked_keys += keys.keys;
        else if (keys.is_far)
            has_far = true;
        else
            run_key_tile(keys, state);
    }
    if (has_far) run_far(range, state);
    if (masked_keys == 0 || numbers_.fill_is_minus_infinity()) return;
    if (plan_.desc.bias_on_fill && plan_.bias.column_count != 0) return run_masked(range, state);
    merge_masked(range, masked_keys, state);
}

void tile_worker::run_key_tile(const key_tile& keys, float* state) {
    const strided_matrix key = keys_of_tile(keys), value = values_of_tile(keys);
    for_each_panel([&](const panel_rows& panel) { run_panel(panel, keys, key, value, state); });
}

// Keys behind the boundary of the panel's last query add nothing where they are filled with
// -infinity.
std::int64_t tile_worker::kept_keys(const panel_rows& panel, const key_tile& keys) const {
    if (!keys.is_crossed || !numbers_.fill_is_minus_infinity()) return keys.keys;
    const std::int64_t last = numbers_.boundary + panel.first + panel.queries - 1;
    return std::clamp<std::int64_t>(last + 1 - keys.first, 0, keys.keys);
}

void tile_worker::run_panel(const panel_rows& panel, key_tile keys, const strided_matrix& key,
                            const strided_matrix& value, float* state) {
    keys.keys = kept_keys(panel, keys);
    if (keys.keys == 0) return;
    float* const weights = scratch_ + plan_.worker.scores;
    float* const factor = scratch_ + plan_.worker.factor;
    const float* const queries =
        scratch_ + plan_.worker.queries + panel.number * plan_.panel * plan_.depth;
    const panel_state own = state_of(panel, state);
    const auto multiply = plan_.in_pairs ? kernels_.multiply_pairs : kernels_.multiply;
    multiply({key.first, key.row_bytes, key.column_bytes, keys.keys, plan_.depth_steps(), queries,
              weights, nullptr, panel.queries});
    panel_scores scores{weights, keys.keys, panel.queries};
    add_sides(panel, keys, scores);
    kernels_.weigh(scores, own, factor);
    const std::int64_t steps = plan_.in_pairs ? (keys.keys + 1) / 2 : keys.keys;
    multiply({value.first, value.column_bytes, value.row_bytes, plan_.columns, steps, weights,
              own.values, factor, panel.queries});
}

void tile_worker::add_sides(const panel_rows& panel, const key_tile& keys, panel_scores& scores) {
    scores.in_pairs = plan_.in_pairs;
    if (plan_.in_pairs) scores.scale = numbers_.scale;
    scores.soft_cap = numbers_.soft_cap;
    scores.fill = numbers_.fill;
    scores.bias_on_fill = plan_.desc.bias_on_fill;
    if (keys.is_biased) add_bias(panel, keys, scores);
    if (keys.is_selected) add_cond(panel, keys, scores);
    if (!keys.is_crossed) return;
    // A panel and a tile are shorter than that, so clamping changes nothing.
    constexpr std::int64_t far = 1 << 16;
    scores.is_causal = true;
    scores.boundary = static_cast<std::int32_t>(
        std::clamp(numbers_.boundary + panel.first - keys.first, -far, far));
}

void tile_worker::add_cond(const panel_rows& panel, const key_tile& keys, panel_scores& scores) {
    strided_matrix conds = matrix(plan_.cond, at_.cond, panel.first);
    conds.first += keys.first * conds.column_bytes;
    auto* const to = reinterpret_cast<std::byte*>(scratch_ + plan_.worker.conds);
    scores.cond = to;
    scores.cond_step = plan_.panel;
    if (conds.row_bytes == 0) {
        scores.cond_step = 1;
        for (std::int64_t i = 0; i < keys.keys; ++i) to[i] = conds.first[i * conds.column_bytes];
    } else {
        kernels_.load_conds(conds, panel.queries, keys.keys, to);
    }
    if (plan_.desc.cond_masks)
        std::transform(to, to + keys.keys * scores.cond_step, to,
                       [](std::byte b) { return std::byte{b == std::byte{0}}; });
}

void tile_worker::add_bias(const panel_rows& panel, const key_tile& keys, panel_scores& scores) {
    strided_matrix bias = matrix(plan_.bias, at_.bias, panel.first);
    bias.first += keys.first * bias.column_bytes;
    float* const to = scratch_ + plan_.worker.bias;
    scores.bias = to;
    scores.bias_step = bias.row_bytes == 0 ? 1 : plan_.panel;
    if (bias.row_bytes == 0)
        kernels_.load_rows(bias, 1, keys.keys, to);
    else
        kernels_.load_panel(bias, panel.queries, keys.keys, 1, to, scratch_ + plan_.worker.work);
}

// Whether a score has a weight in any of these rows: whether none is so far above it.
bool tile_worker::matters(const float* maxima, std::int64_t queries, float score,
                          float distance) const {
    return std::any_of(maxima, maxima + queries,
                       [&](float maximum) { return !(maximum - score > distance); });
}

// A bias that masks by a finite number leaves a row its scores where the row has no others, so none
// above half that number.
void tile_worker::run_far(const tile_range& range, float* state) {
    for (std::int64_t number = range.first; number < range.last; ++number) {
        key_tile keys{};
        if (look_up(number, keys) != tile_mask::masked && keys.is_far &&
            matters_with_bias(keys, 0, state))
            run_key_tile(keys, state);
    }
}

// A bias on the fill gives each masked place a weight of its own. Where one counts, its tile is
// computed like a mixed one.
void tile_worker::run_masked(const tile_range& range, float* state) {
    for (std::int64_t number = range.first; number < range.last; ++number) {
        key_tile keys{};
        if (look_up(number, keys) != tile_mask::masked ||
            !matters_with_bias(keys, numbers_.fill, state))
            continue;
        keys.is_selected = tiles_.cond != nullptr && tiles_.cond[number] == tile_mask::masked;
        keys.is_crossed = !keys.is_selected;
        run_key_tile(keys, state);
    }
}

// Whether the score with the tile's bias matters to a row. NaN in the bias counts.
bool tile_worker::matters_with_bias(const key_tile& keys, float score, const float* state) {
    bool does = false;
    for_each_panel([&](const panel_rows& panel) {
        panel_scores scores;
        add_bias(panel, keys, scores);
        const std::int64_t count = keys.keys * scores.bias_step;
        const float highest =
            std::accumulate(scores.bias + 1, scores.bias + count, scores.bias[0],
                            [](float a, float b) { return std::isnan(a) || a > b ? a : b; });
        const float reached = score + highest;
        const float distance = keys.is_far ? std::max(no_weight, -reached / 2) : no_weight;
        does = does || (reached != minus_infinity && matters(state + panel.number * plan_.panel,
                                                             panel.queries, reached, distance));
    });
    return does;
}

// The sum of the values of all masked tiles.
void tile_worker::add_masked(const tile_range& range, float* sums) {
    std::fill_n(sums, plan_.columns, 0.0F);
    for (std::int64_t number = range.first; number < range.last; ++number) {
        key_tile keys{};
        if (look_up(number, keys) != tile_mask::masked) continue;
        const strided_matrix value = floats_of_values(keys);
        kernels_.add_rows(value.first, value.row_bytes, keys.keys, plan_.columns, sums);
    }
}

// Each key of a masked tile has the weight exp(fill), for all queries.
void tile_worker::merge_masked(const tile_range& range, std::int64_t masked_keys, float* state) {
    if (!matters(state, rows_, numbers_.fill, no_weight)) return;
    float* const sums = scratch_ + plan_.worker.sums;
    const panel_state masked{sums + plan_.columns, sums + plan_.columns + plan_.panel, sums};
    add_masked(range, sums);
    std::fill_n(masked.maximum, plan_.panel, numbers_.fill);
    std::fill_n(masked.sum, plan_.panel, static_cast<float>(masked_keys));
    for_each_panel([&](const panel_rows& panel) {
        kernels_.merge(state_of(panel, state), masked, 1, plan_.columns, panel.queries);
    });
}

void tile_worker::merge(const tile_range& range, float* into, float* from) {
    bind(range);
    for_each_panel([&](const panel_rows& panel) {
        kernels_.merge(state_of(panel, into), state_of(panel, from), plan_.panel, plan_.columns,
                       panel.queries);
    });
}

void tile_worker::finish(const tile_range& range, float* state) {
    bind(range);
    for_each_panel([&](const panel_rows& panel) { finish_panel(panel, state_of(panel, state)); });
}

// A row without a score above -infinity: 0 / 0, unless it is to be 0.
void tile_worker::finish_panel(const panel_rows& panel, const panel_state& state) {
    float* const factor = scratch_ + plan_.worker.factor;
    const bool gives_zero = plan_.desc.inf_as_zero || plan_.keys == 0;
    for (std::int64_t q = 0; q < plan_.panel; ++q) {
        factor[q] = state.sum[q] == 0 && gives_zero ? 0.0F : 1 / state.sum[q];
        if (!plan_.desc.nan_as_zero || !std::isnan(state.sum[q])) continue;
        factor[q] = 0;
        for (std::int64_t c = 0; c < plan_.columns; ++c) state.values[c * plan_.panel + q] = 0;
    }
    if (plan_.statistics.column_count != 0) write_statistics(panel, state);
    kernels_.store_panel(state.values, factor, panel.queries, plan_.columns,
                         matrix(plan_.dst, at_.dst, panel.first), scratch_ + plan_.worker.work);
}

void tile_worker::write_statistics(const panel_rows& panel, const panel_state& state) {
    const strided_matrix to = matrix(plan_.statistics, at_.statistics, panel.first);
    const float of_masked = plan_.keys == 0          ? minus_infinity
                            : plan_.desc.inf_as_zero ? 0.0F
                                                     : std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t q = 0; q < panel.queries; ++q) {
        const float value = state.sum[q] == 0
                                ? of_masked
                                : state.maximum[q] + plan_.kernels->rows.log(state.sum[q]);
        std::memcpy(to.first + q * to.row_bytes, &value, sizeof value);
    }
}

} // namespace maskwise
