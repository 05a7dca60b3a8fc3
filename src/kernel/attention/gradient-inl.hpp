// Gradients of a panel's scores, for one Highway target.

#if defined(MASKWISE_KERNEL_ATTENTION_GRADIENT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_GRADIENT_INL
#undef MASKWISE_KERNEL_ATTENTION_GRADIENT_INL
#else
#define MASKWISE_KERNEL_ATTENTION_GRADIENT_INL
#endif

#include "kernel/attention/panel-inl.hpp"
#include "kernel/attention/store-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// The score, and its derivative with respect to dot(query, key) * scale. The slope is used only
// with has_slope.
struct score_slope {
    vec_f32 score, slope;
};

struct scale_only {
    static constexpr bool has_slope = false;
    vec_f32 factor;
    HWY_ATTR HWY_INLINE score_slope operator()(const score_steps&, vec_f32 product) const {
        return {hn::Mul(product, factor), factor};
    }
};

struct any_steps {
    static constexpr bool has_slope = true;
    HWY_ATTR HWY_INLINE score_slope operator()(const score_steps& steps, vec_f32 product) const {
        const auto one = hn::Set(f32_tag(), 1.0F);
        if (!steps.has_tanh) return {apply_factors(steps, 0, steps.count, product), one};
        const auto tanh = hn::Tanh(f32_tag(), apply_factors(steps, 0, steps.before_tanh, product));
        return {apply_factors(steps, steps.before_tanh, steps.count, tanh),
                hn::NegMulAdd(tanh, tanh, one)};
    }
};

HWY_ATTR HWY_INLINE vec_f32 zero_masked(const panel_scores& tile, std::int64_t key,
                                        std::int64_t lane, vec_f32 value) {
    const auto zero = hn::Zero(f32_tag());
    if (tile.cond != nullptr) value = select_by_cond<wide_panel>(tile, key, lane, value, zero);
    if (tile.spans != nullptr) value = select_by_spans<wide_panel>(tile, key, lane, value, zero);
    return value;
}

// One vector of queries of a tile.
template <bool IsMasked, bool InPairs, class Steps>
struct gradient_lanes {
    const panel_scores& tile;
    const panel_gradients& to;
    const Steps steps;
    const std::int64_t lane;
    const vec_f32 maximum, log_sum, delta;
    vec_f32 not_finite; // NaN after a product that is not finite

    struct values {
        vec_f32 weight, gradient;
    };

    HWY_ATTR HWY_INLINE values values_of(std::int64_t key) {
        const f32_tag d;
        const std::int64_t i = key * wide_panel::queries() + lane;
        const auto product = hn::LoadU(d, tile.scores + i), other = hn::LoadU(d, to.products + i);
        auto [score, slope] = steps(tile.steps, product);
        if constexpr (IsMasked) {
            score = apply_bias_and_mask<wide_panel>(tile, key, lane, score, hn::Set(d, tile.fill));
            const auto zero = hn::Zero(d);
            not_finite = hn::MulAdd(product, zero, hn::MulAdd(other, zero, not_finite));
        }
        if constexpr (InPairs && (IsMasked || Steps::has_slope)) score = with_short_nans(score);
        const auto exponent = hn::Sub(hn::Sub(score, maximum), log_sum);
        const auto weight = InPairs ? exp_of_pair(exponent) : exp_below_one(exponent);
        auto gradient = hn::Mul(weight, hn::Sub(other, delta));
        if (Steps::has_slope && !to.of_bias) gradient = hn::Mul(gradient, slope);
        if (IsMasked && !to.of_fill)
            gradient = zero_masked(tile, key, lane, gradient); // last: the slope may be NaN
        return {weight, gradient};
    }

    HWY_ATTR HWY_INLINE void run_floats() {
        const f32_tag d;
        for (std::int64_t key = 0; key < tile.keys; ++key) {
            const auto [weight, gradient] = values_of(key);
            const std::int64_t i = key * wide_panel::queries() + lane;
            hn::StoreU(rounded(weight, to.rounds_to), d, tile.scores + i);
            hn::StoreU(rounded(gradient, to.rounds_to), d, to.products + i);
        }
    }

    // Rounds to bf16, ties to even. Only NaNs of bf16 values and of with_short_nans surely stay
    // NaN.
    HWY_ATTR HWY_INLINE static void store_row(vec_f32 row, std::uint16_t* dst) {
        const hn::RebindToUnsigned<f32_tag> du;
        auto bits = hn::BitCast(du, row);
        const auto is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
        bits = hn::Add(bits, hn::Add(is_odd, hn::Set(du, 0x7FFF)));
        hn::StoreU(hn::TruncateTo(hn::Rebind<std::uint16_t, f32_tag>(), hn::ShiftRight<16>(bits)),
                   hn::Rebind<std::uint16_t, f32_tag>(), dst);
    }

    HWY_ATTR HWY_INLINE void store_rows(const values& row, std::int64_t key) const {
        const std::int64_t i = key * wide_panel::queries() + lane;
        store_row(row.weight, to.weight_rows + i);
        store_row(row.gradient, to.gradient_rows + i);
    }

    HWY_ATTR HWY_INLINE void run_pairs() {
        const f32_tag d;
        const std::int64_t panel = wide_panel::queries();
        for (std::int64_t key = 0; key < tile.keys; key += 2) {
            const auto even = values_of(key);
            store_rows(even, key);
            auto second = hn::Zero(d);
            if (key + 1 < tile.keys) {
                const auto odd = values_of(key + 1);
                store_rows(odd, key + 1);
                second = odd.gradient;
            }
            hn::StoreU(round_to_pairs(even.gradient, second), d,
                       to.products + key / 2 * panel + lane);
        }
    }

    HWY_ATTR HWY_INLINE bool run() {
        if constexpr (InPairs)
            run_pairs();
        else
            run_floats();
        return hn::AllTrue(f32_tag(), hn::Eq(not_finite, not_finite));
    }
};

template <bool IsMasked, bool InPairs, class Steps>
HWY_ATTR HWY_NOINLINE bool gradients_by(const panel_scores& tile_arg, const panel_gradients& to_arg,
                                        const Steps& steps) {
    const f32_tag d;
    const panel_scores tile = tile_arg; // copies, because stores to scores may change the arguments
    const panel_gradients to = to_arg;
    bool is_finite = true;
    for (std::int64_t lane = 0; lane < tile.queries; lane += f32_lanes()) {
        gradient_lanes<IsMasked, InPairs, Steps> lanes{
            tile,
            to,
            steps,
            lane,
            with_short_nans(hn::LoadU(d, to.maxima + lane)),
            with_short_nans(hn::LoadU(d, to.log_sums + lane)),
            hn::LoadU(d, to.deltas + lane),
            hn::Zero(d)};
        is_finite &= lanes.run();
    }
    return is_finite;
}

template <bool IsMasked, bool InPairs>
HWY_ATTR HWY_INLINE bool gradients_by_steps(const panel_scores& tile, const panel_gradients& to) {
    if (!is_single_multiply(tile.steps))
        return gradients_by<IsMasked, InPairs>(tile, to, any_steps());
    return gradients_by<IsMasked, InPairs>(
        tile, to, scale_only{with_short_nans(hn::Set(f32_tag(), tile.steps.factors[0].number))});
}

HWY_ATTR inline bool panel_score_gradients(const panel_scores& tile, const panel_gradients& to) {
    if (is_masked(tile))
        return tile.in_pairs ? gradients_by_steps<true, true>(tile, to)
                             : gradients_by_steps<true, false>(tile, to);
    return tile.in_pairs ? gradients_by_steps<false, true>(tile, to)
                         : gradients_by_steps<false, false>(tile, to);
}

HWY_ATTR inline void rows_from_f32(const float* rows, std::int64_t row_count, std::int64_t columns,
                                   const strided_matrix& dst) {
    for (std::int64_t r = 0; r < row_count; ++r)
        store_row(rows + r * columns, columns, dst, dst.first + r * dst.row_bytes);
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_GRADIENT_INL
