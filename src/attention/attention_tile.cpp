#include "attention/attention_tile.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace maskwise {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
constexpr std::int64_t float_bytes = sizeof(float);

std::byte* bytes_at(const void* base) {
    return static_cast<std::byte*>(const_cast<void*>(base));
}

} // namespace

void tile_worker::bind(const tile_range& range) {
    position_ = position_of(range.head, plan_.outer);
    first_row_ = range.row_tile * plan_.tile_rows;
    rows_ = std::min(plan_.tile_rows, plan_.rows - first_row_);
    if (map_ != nullptr) tiles_ = map_ + place_in_map(plan_.mask, position_, range.row_tile);
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

// Keys or values of a tile as f32 that may be read where they are.
strided_matrix tile_worker::rows_of_keys(const head_operand& operand, const void* base,
                                         bool converts, const key_tile& keys, float* to) const {
    const strided_matrix own = matrix(operand, base, keys.first);
    if (!converts) return own;
    kernels_.load_rows(own, keys.keys, operand.column_count, to);
    return {reinterpret_cast<std::byte*>(to), row_type::f32, operand.column_count * float_bytes,
            float_bytes};
}

// As products take them: f32, or pairs of bf16.
strided_matrix tile_worker::keys_of_tile(const key_tile& keys) const {
    if (!plan_.in_pairs)
        return rows_of_keys(plan_.key, at_.key, plan_.converts_key, keys,
                            scratch_ + plan_.worker.keys);
    strided_matrix pairs = matrix(plan_.key, at_.key, keys.first);
    pairs.column_bytes = float_bytes;
    return pairs;
}

strided_matrix tile_worker::values_of_tile(const key_tile& keys) const {
    if (!plan_.in_pairs)
        return rows_of_keys(plan_.value, at_.value, plan_.converts_value, keys,
                            scratch_ + plan_.worker.values);
    float* const pairs = scratch_ + plan_.worker.pairs;
    kernels_.load_pairs(matrix(plan_.value, at_.value, keys.first), keys.keys, plan_.columns,
                        pairs);
    return {reinterpret_cast<std::byte*>(pairs), row_type::f32, plan_.columns * float_bytes,
            float_bytes};
}

// A pair of bf16 moves like one f32, and is not scaled.
void tile_worker::load_queries(const panel_rows& panel) const {
    strided_matrix queries = matrix(plan_.query, at_.query, panel.first);
    if (plan_.in_pairs) {
        queries.type = row_type::f32;
        queries.column_bytes = float_bytes;
    }
    kernels_.load_panel(queries, panel.queries, plan_.depth_steps(),
                        plan_.in_pairs ? 1 : *plan_.desc.scale,
                        scratch_ + plan_.worker.queries + panel.number * plan_.panel * plan_.depth,
                        scratch_ + plan_.worker.work);
}

tile_mask tile_worker::look_up(std::int64_t number, key_tile& keys) const {
    keys.first = number * plan_.tile_keys;
    keys.keys = std::min(plan_.tile_keys, plan_.keys - keys.first);
    tile_mask state = tile_mask::kept;
    if (plan_.is_causal)
        state = causal_tile(plan_.boundary, first_row_, rows_, keys.first, keys.keys);
    keys.is_crossed = state == tile_mask::mixed;
    if (tiles_ == nullptr || state == tile_mask::masked) return state;
    keys.is_selected = tiles_[number] == tile_mask::mixed;
    return tiles_[number] == tile_mask::kept ? state : tiles_[number];
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
    for (std::int64_t number = range.first; number < range.last; ++number) {
        key_tile keys{};
        if (look_up(number, keys) != tile_mask::masked)
            run_key_tile(keys, state);
        else
            masked_keys += keys.keys;
    }
    if (masked_keys > 0 && !plan_.fill_is_minus_infinity) merge_masked(range, masked_keys, state);
}

void tile_worker::run_key_tile(const key_tile& keys, float* state) {
    const strided_matrix key = keys_of_tile(keys), value = values_of_tile(keys);
    for_each_panel([&](const panel_rows& panel) { run_panel(panel, keys, key, value, state); });
}

// Keys behind the boundary of the panel's last query add nothing where they are filled with
// -infinity.
std::int64_t tile_worker::kept_keys(const panel_rows& panel, const key_tile& keys) const {
    if (!keys.is_crossed || !plan_.fill_is_minus_infinity) return keys.keys;
    const std::int64_t last = plan_.boundary + panel.first + panel.queries - 1;
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
    if (plan_.in_pairs) scores.scale = *plan_.desc.scale;
    scores.soft_cap = plan_.desc.soft_cap;
    scores.fill = plan_.desc.fill;
    if (plan_.bias.column_count != 0) add_bias(panel, keys, scores);
    if (keys.is_selected) add_cond(panel, keys, scores);
    if (!keys.is_crossed) return;
    // A panel and a tile are shorter than that, so clamping changes nothing.
    constexpr std::int64_t far = 1 << 16;
    scores.is_causal = true;
    scores.boundary =
        static_cast<std::int32_t>(std::clamp(plan_.boundary + panel.first - keys.first, -far, far));
}

void tile_worker::add_cond(const panel_rows& panel, const key_tile& keys, panel_scores& scores) {
    strided_matrix conds = matrix(plan_.cond, at_.cond, panel.first);
    conds.first += keys.first * conds.column_bytes;
    auto* const to = reinterpret_cast<std::byte*>(scratch_ + plan_.worker.conds);
    scores.cond = to;
    scores.cond_step = plan_.panel;
    if (conds.row_bytes != 0) return kernels_.load_conds(conds, panel.queries, keys.keys, to);
    scores.cond_step = 1;
    for (std::int64_t i = 0; i < keys.keys; ++i) to[i] = conds.first[i * conds.column_bytes];
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

// Below exp(-88) the kernels' exponential is 0.
bool tile_worker::matters(const float* maxima) const {
    constexpr float far = 88;
    return std::any_of(maxima, maxima + rows_,
                       [&](float maximum) { return !(maximum - plan_.desc.fill > far); });
}

// The sum of the values of all masked tiles.
void tile_worker::add_masked(const tile_range& range, float* sums) {
    std::fill_n(sums, plan_.columns, 0.0F);
    for (std::int64_t number = range.first; number < range.last; ++number) {
        key_tile keys{};
        if (look_up(number, keys) != tile_mask::masked) continue;
        const strided_matrix value = rows_of_keys(plan_.value, at_.value, plan_.converts_value,
                                                  keys, scratch_ + plan_.worker.values);
        kernels_.add_rows(value.first, value.row_bytes, keys.keys, plan_.columns, sums);
    }
}

// Each key of a masked tile has the weight exp(fill), for all queries.
void tile_worker::merge_masked(const tile_range& range, std::int64_t masked_keys, float* state) {
    if (!matters(state)) return;
    float* const sums = scratch_ + plan_.worker.sums;
    const panel_state masked{sums + plan_.columns, sums + plan_.columns + plan_.panel, sums};
    add_masked(range, sums);
    std::fill_n(masked.maximum, plan_.panel, plan_.desc.fill);
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
    for (std::int64_t q = 0; q < plan_.panel; ++q)
        factor[q] = state.sum[q] == 0 && gives_zero ? 0.0F : 1 / state.sum[q];
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
