#include "attention/tile_operands.hpp"

#include <algorithm>
#include <limits>

namespace maskwise {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
// The kernels' exp(x) is 0 for x below -88.
constexpr float no_weight = 88;

// A tile is deferred if its scores have a bound and its largest bias is this far below the row
// tile's largest bias.
constexpr float low_bias = 16;

tile_action action_of_bias(const key_tile& keys, const row_tile& rows, bool masks) {
    if (!keys.needs_bias) return tile_action::compute;
    if (masks && keys.highest_bias == minus_infinity) return tile_action::skip;
    const bool is_low =
        rows.maps.key_norms != nullptr && keys.highest_bias < rows.best_bias - low_bias;
    return masks || is_low ? tile_action::defer : tile_action::compute;
}

// Returns an upper bound on -slope * distance in the tile.
float highest_of_slopes(const key_tile& keys, const row_tile& rows) {
    if (rows.least_slope < 0) return -minus_infinity;
    const std::int64_t last_key = keys.first + keys.keys - 1;
    const std::int64_t distance = std::max<std::int64_t>(
        {0, keys.first - rows.last_position, rows.first_position - last_key});
    return -rows.least_slope * static_cast<float>(distance);
}

} // namespace

key_tile classify_tile(const tile_plan& plan, const attention_numbers& numbers,
                       const row_tile& rows, std::int64_t number) {
    key_tile keys{.number = number, .first = number * plan.tile_keys};
    keys.keys = std::min(plan.tile_keys, plan.keys - keys.first);
    const tile_maps& maps = rows.maps;
    tile_mask kept = tile_mask::kept;
    if (rows.spans != nullptr) kept = rows.spans->state(keys.first, keys.first + keys.keys);
    keys.needs_spans = kept != tile_mask::kept;
    if (maps.cond != nullptr && kept != tile_mask::masked) {
        keys.needs_cond = maps.cond[number] != tile_mask::kept;
        if (keys.needs_cond) kept = maps.cond[number];
    }
    const tile_mask bias = maps.bias != nullptr ? maps.bias[number] : tile_mask::kept;
    keys.needs_bias = bias != tile_mask::kept || rows.has_slopes;
    if (keys.needs_bias)
        keys.highest_bias =
            rows.has_slopes ? highest_of_slopes(keys, rows) : maps.highest_bias[number];
    const bool has_fill = kept != tile_mask::kept && !numbers.fill_is_minus_infinity();
    if (kept == tile_mask::masked) {
        keys.needs_bias = keys.needs_bias && plan.desc.bias_on_fill;
        keys.action = has_fill ? tile_action::fill : tile_action::skip;
        return keys;
    }
    const bool fill_is_biased = plan.desc.bias_on_fill && numbers.fill <= 0;
    keys.action = tile_action::compute;
    if (!has_fill || fill_is_biased)
        keys.action = action_of_bias(keys, rows, bias == tile_mask::masked);
    return keys;
}

// NaN in the bias or in a row's scores counts as a weight. If the scores have no bound, a deferred
// tile with a very low finite bias has no weight only if every row's maximum exceeds half of that
// bias. A row with a lower maximum may have no other unmasked key and then needs the tile.
bool has_weight(const key_tile& keys, float fill, float bound, const float* maxima,
                std::int64_t rows) {
    const bool is_filled = keys.action == tile_action::fill;
    const bool is_bounded = bound < -minus_infinity;
    float reached = (is_filled ? fill : 0) + (keys.needs_bias ? keys.highest_bias : 0);
    if (reached == minus_infinity) return false;
    const float distance = is_filled || is_bounded ? no_weight : std::max(no_weight, -reached / 2);
    if (is_bounded) reached += bound;
    return std::any_of(maxima, maxima + rows,
                       [&](float maximum) { return !(maximum - reached > distance); });
}

} // namespace maskwise
