// Softmax on a panel, for one Highway target. `Panel` defines which lanes belong to a query.

#if defined(MASKWISE_KERNEL_ATTENTION_PANEL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_PANEL_INL
#undef MASKWISE_KERNEL_ATTENTION_PANEL_INL
#else
#define MASKWISE_KERNEL_ATTENTION_PANEL_INL
#endif

#include "kernel/attention/contract.hpp"
#include "kernel/attention/pairs-inl.hpp"
#include "kernel/rows/rows-inl.hpp"

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// Two vectors of queries, one query per lane.
struct wide_panel {
    HWY_ATTR HWY_INLINE static std::int64_t queries() { return 2 * f32_lanes(); }
    // Keys or columns per vector, and the distance in floats to the next vector.
    HWY_ATTR HWY_INLINE static std::int64_t keys_at_once() { return 1; }
    HWY_ATTR HWY_INLINE static std::int64_t step() { return queries(); }

    // Loads one number per query.
    template <class D>
    HWY_ATTR HWY_INLINE static hn::VFromD<D> load(D d, const hn::TFromD<D>* src) {
        return hn::LoadU(d, src);
    }
    HWY_ATTR HWY_INLINE static void store(vec_f32 values, float* dst) {
        hn::StoreU(values, f32_tag(), dst);
    }
    // Reduces each query's numbers in the vector to one number.
    template <class Combine>
    HWY_ATTR HWY_INLINE static vec_f32 reduce_keys(vec_f32 values, const Combine&) {
        return values;
    }
    // Replaces lanes past the last key by `padding`.
    HWY_ATTR HWY_INLINE static vec_f32 pad_keys(vec_f32 values, std::int64_t, vec_f32) {
        return values;
    }
    // Loads one number per key.
    HWY_ATTR HWY_INLINE static vec_f32 load_by_key(const float* src) {
        return hn::Set(f32_tag(), *src);
    }
    HWY_ATTR HWY_INLINE static auto key_indexes(std::int64_t key) {
        return hn::Set(hn::RebindToSigned<f32_tag>(), static_cast<std::int32_t>(key));
    }
    // Does not branch, because branches on a random mask would be mispredicted.
    HWY_ATTR HWY_INLINE static vec_f32 select_by_key(const std::byte* cond, vec_f32 score,
                                                     vec_f32 fill) {
        const auto is_true = hn::Ne(key_indexes(std::to_integer<std::int64_t>(*cond)),
                                    hn::Zero(hn::RebindToSigned<f32_tag>()));
        return hn::IfThenElse(hn::RebindMask(f32_tag(), is_true), score, fill);
    }
};

template <class Panel>
HWY_ATTR HWY_INLINE vec_f32 load_bias(const panel_scores& tile, std::int64_t key,
                                      std::int64_t lane) {
    if (tile.bias_step == 1) return Panel::load_by_key(tile.bias + key);
    return hn::LoadU(f32_tag(), tile.bias + key * tile.bias_step + lane);
}

template <class Panel>
HWY_ATTR HWY_INLINE vec_f32 select_by_cond(const panel_scores& tile, std::int64_t key,
                                           std::int64_t lane, vec_f32 score, vec_f32 fill) {
    if (tile.cond_step != 1)
        return select_by_bytes(tile.cond + key * tile.cond_step + lane, score, fill);
    return Panel::select_by_key(tile.cond + key, score, fill);
}

template <class Panel>
HWY_ATTR HWY_INLINE auto is_in_span(const std::int32_t* span, std::int64_t key) {
    const hn::RebindToSigned<f32_tag> di;
    const hn::RebindToUnsigned<f32_tag> du;
    const auto since_first = hn::Sub(Panel::key_indexes(key), Panel::load(di, span));
    const auto count = Panel::load(di, span + Panel::queries());
    return hn::Lt(hn::BitCast(du, since_first), hn::BitCast(du, count));
}

template <class Panel>
HWY_ATTR HWY_INLINE vec_f32 select_by_spans(const panel_scores& tile, std::int64_t key,
                                            std::int64_t lane, vec_f32 score, vec_f32 fill) {
    auto is_unmasked = is_in_span<Panel>(tile.spans + lane, key);
    if (tile.has_second_span)
        is_unmasked =
            hn::Or(is_unmasked, is_in_span<Panel>(tile.spans + 2 * Panel::queries() + lane, key));
    return hn::IfThenElse(hn::RebindMask(f32_tag(), is_unmasked), score, fill);
}

HWY_ATTR HWY_INLINE vec_f32 apply_factors(const score_steps& steps, std::size_t first,
                                          std::size_t last, vec_f32 score) {
    for (std::size_t i = first; i < last; ++i) {
        const auto number = hn::Set(f32_tag(), steps.factors[i].number);
        score = steps.factors[i].divides ? hn::Div(score, number) : hn::Mul(score, number);
    }
    return score;
}

template <class Panel>
HWY_ATTR HWY_INLINE vec_f32 apply_bias_and_mask(const panel_scores& tile, std::int64_t key,
                                                std::int64_t lane, vec_f32 score, vec_f32 fill) {
    const bool has_bias = tile.bias != nullptr;
    if (has_bias && !tile.bias_on_fill) score = hn::Add(score, load_bias<Panel>(tile, key, lane));
    if (tile.cond != nullptr) score = select_by_cond<Panel>(tile, key, lane, score, fill);
    if (tile.spans != nullptr) score = select_by_spans<Panel>(tile, key, lane, score, fill);
    if (has_bias && tile.bias_on_fill) score = hn::Add(score, load_bias<Panel>(tile, key, lane));
    return score;
}

HWY_ATTR HWY_INLINE vec_f32 apply_steps(const score_steps& steps, vec_f32 score) {
    if (steps.has_tanh)
        score = hn::Tanh(f32_tag(), apply_factors(steps, 0, steps.before_tanh, score));
    return apply_factors(steps, steps.before_tanh, steps.count, score);
}

// True also without steps: the default factor is 1.
HWY_ATTR HWY_INLINE bool is_single_multiply(const score_steps& steps) {
    return steps.count <= 1 && !steps.has_tanh && !steps.factors[0].divides;
}

// Returns the largest score per query. The scores must be final.
template <class Panel>
HWY_ATTR HWY_INLINE vec_f32 largest_score(const float* scores, std::int64_t keys) {
    const f32_tag d;
    const auto lowest = hn::Set(d, minus_infinity);
    auto largest = lowest, largest_1 = lowest; // two chains hide latency
    const std::int64_t two_vectors = 2 * Panel::keys_at_once();
    for (; keys >= two_vectors; keys -= two_vectors, scores += 2 * Panel::step()) {
        largest = hn::Max(largest, hn::LoadU(d, scores));
        largest_1 = hn::Max(largest_1, hn::LoadU(d, scores + Panel::step()));
    }
    for (; keys > 0; keys -= Panel::keys_at_once(), scores += Panel::step())
        largest = hn::Max(largest, Panel::pad_keys(hn::LoadU(d, scores), keys, lowest));
    return hn::Max(largest, largest_1);
}

// Applies `steps`, bias and mask in place; returns the maxima.
template <class Panel, class Steps>
HWY_ATTR HWY_INLINE vec_f32 process_scores(const panel_scores& tile, std::int64_t lane,
                                           Steps steps) {
    const f32_tag d;
    const auto fill = hn::Set(d, tile.fill), lowest = hn::Set(d, minus_infinity);
    auto largest = lowest;
    for (std::int64_t key = 0; key < tile.keys; key += Panel::keys_at_once()) {
        float* const scores = tile.scores + key * Panel::queries() + lane;
        const auto score =
            apply_bias_and_mask<Panel>(tile, key, lane, steps(hn::LoadU(d, scores)), fill);
        hn::StoreU(score, d, scores);
        largest = hn::Max(largest, Panel::pad_keys(score, tile.keys - key, lowest));
    }
    return largest;
}

HWY_ATTR HWY_INLINE bool is_masked(const panel_scores& tile) {
    return tile.bias != nullptr || tile.cond != nullptr || tile.spans != nullptr;
}

// The most frequent case: an unmasked tile with one factor.
template <class Panel>
HWY_ATTR HWY_INLINE vec_f32 multiply_scores(float* scores, std::int64_t keys, vec_f32 factor) {
    const f32_tag d;
    const auto lowest = hn::Set(d, minus_infinity);
    auto largest = lowest;
    for (; keys > 0; keys -= Panel::keys_at_once(), scores += Panel::step()) {
        const auto score = hn::Mul(hn::LoadU(d, scores), factor);
        hn::StoreU(score, d, scores);
        largest = hn::Max(largest, Panel::pad_keys(score, keys, lowest));
    }
    return largest;
}

template <class Panel>
HWY_ATTR HWY_INLINE vec_f32 process_by_kind(const panel_scores& tile, std::int64_t lane) {
    float* const scores = tile.scores + lane;
    if (!is_masked(tile) && tile.steps.is_empty()) return largest_score<Panel>(scores, tile.keys);
    if (!is_single_multiply(tile.steps))
        return process_scores<Panel>(
            tile, lane, [&](vec_f32 score) HWY_ATTR { return apply_steps(tile.steps, score); });
    const auto factor = hn::Set(f32_tag(), tile.steps.factors[0].number);
    if (!is_masked(tile)) return multiply_scores<Panel>(scores, tile.keys, factor);
    return process_scores<Panel>(tile, lane,
                                 [&](vec_f32 score) HWY_ATTR { return hn::Mul(score, factor); });
}

// Applies steps, bias and mask; returns the maxima, including `before`.
template <class Panel>
HWY_ATTR HWY_INLINE vec_f32 update_maximum(const panel_scores& tile, std::int64_t lane,
                                           vec_f32 before) {
    const auto largest = process_by_kind<Panel>(tile, lane);
    return hn::Max(
        before, Panel::reduce_keys(largest, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); }));
}

template <class Panel>
HWY_ATTR HWY_INLINE vec_f32 sum_keys(vec_f32 sums) {
    return Panel::reduce_keys(sums, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

// Returns the shift of exponents: the maximum, or 0 if the maximum is -infinity, because
// -infinity - -infinity is NaN.
HWY_ATTR HWY_INLINE vec_f32 shift_of(vec_f32 maximum) {
    const f32_tag d;
    return hn::IfThenZeroElse(hn::Eq(maximum, hn::Set(d, minus_infinity)), maximum);
}

// Turns scores into weights. Returns `sum` plus the weights; wide panels add in the order of keys.
template <class Panel>
HWY_ATTR HWY_INLINE vec_f32 weights_in_place(float* scores, std::int64_t keys, vec_f32 shift,
                                             vec_f32 sum) {
    const f32_tag d;
    for (; keys > 0; keys -= Panel::keys_at_once(), scores += Panel::step()) {
        const auto weight = exp_below_one(hn::Sub(hn::LoadU(d, scores), shift));
        hn::StoreU(weight, d, scores);
        sum = hn::Add(sum, Panel::pad_keys(weight, keys, hn::Zero(d)));
    }
    return sum_keys<Panel>(sum);
}

// Turns scores into bf16 pairs of weights exp(score * factor - shift); returns their sum.
HWY_ATTR HWY_INLINE vec_f32 weights_in_pairs(float* first, std::int64_t keys, vec_f32 factor,
                                             vec_f32 shift) {
    const f32_tag d;
    const std::int64_t panel = 2 * f32_lanes();
    const auto weight = [&](const float* score) HWY_ATTR {
        return exp_of_pair(hn::MulSub(hn::LoadU(d, score), factor, shift));
    };
    auto sum = hn::Zero(d);
    const float* src = first;
    for (float* dst = first; keys > 0; keys -= 2, src += 2 * panel, dst += panel) {
        const auto even = weight(src);
        const auto odd = keys > 1 ? weight(src + panel) : hn::Zero(d);
        hn::StoreU(round_to_pairs_fast(even, odd), d, dst);
        sum = hn::Add(sum, hn::Add(even, odd));
    }
    return sum;
}

// Whether the factor is applied while weights are computed: only in unmasked tiles of bf16 pairs.
// Excludes factors above 1: score * factor could overflow, and then the fused multiply-subtract
// gives another weight than a separate product.
HWY_ATTR HWY_INLINE bool has_late_factor(const panel_scores& tile) {
    const float factor = tile.steps.factors[0].number;
    return tile.in_pairs && !is_masked(tile) && is_single_multiply(tile.steps) && factor > 0 &&
           factor <= 1;
}

template <class Panel>
HWY_ATTR HWY_INLINE void softmax_update_vector(const panel_scores& tile, const panel_state& state,
                                               float* factor, std::int64_t lane) {
    const f32_tag d;
    float* const scores = tile.scores + lane;
    const auto before = Panel::load(d, state.maximum + lane);
    const bool late = has_late_factor(tile);
    const auto factor_of_scores = hn::Set(d, late ? tile.steps.factors[0].number : 1);
    const auto maximum =
        late ? hn::Max(before, hn::Mul(largest_score<Panel>(scores, tile.keys), factor_of_scores))
             : update_maximum<Panel>(tile, lane, before);
    const auto shift = shift_of(maximum);
    const auto sum = tile.in_pairs ? weights_in_pairs(scores, tile.keys, factor_of_scores, shift)
                                   : weights_in_place<Panel>(scores, tile.keys, shift, hn::Zero(d));
    const auto rescale = exp_below_one(hn::Sub(before, shift));
    Panel::store(rescale, factor + lane);
    Panel::store(maximum, state.maximum + lane);
    Panel::store(hn::MulAdd(Panel::load(d, state.sum + lane), rescale, sum), state.sum + lane);
}

// Copies the tile, because the compiler assumes that a store to the scores may change `tile_arg`.
template <class Panel>
HWY_ATTR void panel_softmax_update(const panel_scores& tile_arg, const panel_state& state,
                                   float* factor) {
    const panel_scores tile = tile_arg;
    softmax_update_vector<Panel>(tile, state, factor, 0);
    if (tile.queries > f32_lanes()) softmax_update_vector<Panel>(tile, state, factor, f32_lanes());
}

template <class Panel>
HWY_ATTR void panel_apply_mask(const panel_scores& tile_arg, float* maximum) {
    const panel_scores tile = tile_arg;
    for (std::int64_t lane = 0; lane < tile.queries; lane += f32_lanes()) {
        const auto before = Panel::load(f32_tag(), maximum + lane);
        Panel::store(update_maximum<Panel>(tile, lane, before), maximum + lane);
    }
}

template <class Panel>
HWY_ATTR void panel_exponentiate(const panel_scores& tile, const panel_state& state,
                                 bool key_by_key) {
    const f32_tag d;
    for (std::int64_t lane = 0; lane < tile.queries; lane += f32_lanes()) {
        const auto shift = shift_of(Panel::load(d, state.maximum + lane));
        const auto before = Panel::load(d, state.sum + lane);
        const auto sum = weights_in_place<Panel>(tile.scores + lane, tile.keys, shift,
                                                 key_by_key ? before : hn::Zero(d));
        Panel::store(key_by_key ? sum : hn::Add(before, sum), state.sum + lane);
    }
}

HWY_ATTR HWY_INLINE vec_f32 rounded(vec_f32 weight, elem_type type) {
    if (type == elem_type::bf16) return apply_unary<row_operator::round_bf16>(weight);
    return type == elem_type::f16 ? rounded_to_f16(weight) : weight;
}

template <class Panel>
HWY_ATTR HWY_INLINE void normalize_vector(const panel_scores& tile, vec_f32 factor, elem_type type,
                                          std::int64_t lane) {
    const f32_tag d;
    float* scores = tile.scores + lane;
    for (std::int64_t keys = tile.keys; keys > 0;
         keys -= Panel::keys_at_once(), scores += Panel::step())
        hn::StoreU(rounded(hn::Mul(hn::LoadU(d, scores), factor), type), d, scores);
}

HWY_ATTR HWY_INLINE void normalize_pairs(const panel_scores& tile, vec_f32 factor,
                                         std::int64_t lane) {
    const f32_tag d;
    const std::int64_t panel = 2 * f32_lanes();
    const float* src = tile.scores + lane;
    float* dst = tile.scores + lane;
    for (std::int64_t keys = tile.keys; keys > 0; keys -= 2, src += 2 * panel, dst += panel) {
        const auto even = hn::Mul(hn::LoadU(d, src), factor);
        const auto odd = keys > 1 ? hn::Mul(hn::LoadU(d, src + panel), factor) : hn::Zero(d);
        hn::StoreU(round_to_pairs(even, odd), d, dst);
    }
}

template <class Panel>
HWY_ATTR void panel_normalize(const panel_scores& tile, const float* factor, elem_type type) {
    for (std::int64_t lane = 0; lane < tile.queries; lane += f32_lanes()) {
        const auto factors = Panel::load(f32_tag(), factor + lane);
        if (tile.in_pairs)
            normalize_pairs(tile, factors, lane);
        else
            normalize_vector<Panel>(tile, factors, type, lane);
    }
}

// Merges maxima and sums. Writes the factors that rescale the values of both states.
template <class Panel>
HWY_ATTR HWY_INLINE void merge_sums(const panel_state& state, const panel_state& other,
                                    std::int64_t lane, float* scale_0, float* scale_1) {
    const f32_tag d;
    const auto max_0 = Panel::load(d, state.maximum + lane);
    const auto max_1 = Panel::load(d, other.maximum + lane);
    const auto maximum = hn::Max(max_0, max_1), shift = shift_of(maximum);
    const auto factor_0 = exp_below_one(hn::Sub(max_0, shift));
    const auto factor_1 = exp_below_one(hn::Sub(max_1, shift));
    const auto sum = hn::MulAdd(Panel::load(d, state.sum + lane), factor_0,
                                hn::Mul(Panel::load(d, other.sum + lane), factor_1));
    Panel::store(maximum, state.maximum + lane);
    Panel::store(sum, state.sum + lane);
    Panel::store(factor_0, scale_0);
    Panel::store(factor_1, scale_1);
}

HWY_ATTR inline void panel_merge(const panel_state& state, const panel_state& other,
                                 std::int64_t values_step, std::int64_t columns,
                                 std::int64_t queries) {
    const f32_tag d;
    float scales[2 * row_block_elems];
    for (std::int64_t lane = 0; lane < queries; lane += f32_lanes()) {
        merge_sums<wide_panel>(state, other, lane, scales, scales + row_block_elems);
        const auto scale_0 = hn::LoadU(d, scales), scale_1 = hn::LoadU(d, scales + row_block_elems);
        for (std::int64_t c = 0; c < columns; ++c) {
            float* const values_0 = state.values + c * wide_panel::queries() + lane;
            const auto values_1 = values_step == 1
                                      ? hn::Set(d, other.values[c])
                                      : hn::LoadU(d, other.values + c * values_step + lane);
            hn::StoreU(hn::MulAdd(hn::LoadU(d, values_0), scale_0, hn::Mul(values_1, scale_1)), d,
                       values_0);
        }
    }
}

HWY_ATTR inline void panel_accumulate_sums(float* values, const float* sums, const float* factor,
                                           std::int64_t first, std::int64_t last,
                                           std::int64_t columns) {
    const f32_tag d;
    const hn::RebindToUnsigned<f32_tag> du;
    const auto count = hn::Set(du, static_cast<std::uint32_t>(last - first));
    for (std::int64_t lane = 0; lane < last; lane += f32_lanes()) {
        const auto since_first = hn::Iota(du, static_cast<std::uint32_t>(lane - first));
        const auto is_in_range = hn::RebindMask(d, hn::Lt(since_first, count));
        for (std::int64_t c = 0; c < columns; ++c) {
            const std::int64_t i = c * wide_panel::queries() + lane;
            const auto before = hn::LoadU(d, values + i);
            auto sum = hn::LoadU(d, sums + i);
            if (factor != nullptr) sum = hn::MulAdd(before, hn::LoadU(d, factor + lane), sum);
            hn::StoreU(hn::IfThenElse(is_in_range, sum, before), d, values + i);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_PANEL_INL
