// Arithmetic of attention for one Highway target.

#include "kernel/attention_move-inl.hpp"

// The two kinds of products share their loops: attention_product-inl.hpp makes `multiply` in each
// namespace from what is added for an element of a.
namespace singles {

HWY_ATTR HWY_INLINE void add_product(row_v a, row_v b, row_v& sum) {
    sum = hn::MulAdd(a, b, sum);
}

} // namespace singles

#define MASKWISE_PRODUCTS singles
#define MASKWISE_PRODUCT_ATTR HWY_ATTR
#include "kernel/attention_product-inl.hpp"
#undef MASKWISE_PRODUCT_ATTR
#undef MASKWISE_PRODUCTS

#if HWY_TARGET == HWY_AVX3 || MASKWISE_HAS_BF16_TABLE

#define MASKWISE_PRODUCTS pairs
#if HWY_TARGET == HWY_AVX3
#define MASKWISE_PRODUCT_ATTR __attribute__((target(HWY_TARGET_STR ",avx512bf16")))
#else
#define MASKWISE_PRODUCT_ATTR HWY_ATTR
#endif

namespace pairs {

// The elements are two bf16 each. On ARM by assembly: GCC's functions belong to an architecture of
// their own, which is not that of Highway's where -mcpu names a newer one.
MASKWISE_PRODUCT_ATTR HWY_INLINE void add_product(row_v a, row_v b, row_v& sum) {
#if HWY_TARGET == HWY_AVX3
    sum.raw = _mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(b.raw),
                               reinterpret_cast<__m512bh>(a.raw));
#elif HWY_TARGET == HWY_NEON
    asm(".arch_extension bf16\n\tbfdot %0.4s, %1.8h, %2.8h"
        : "+w"(sum.raw)
        : "w"(b.raw), "w"(a.raw));
#else
    asm(".arch_extension bf16\n\tbfdot %0.s, %1.h, %2.h" : "+w"(sum) : "w"(b), "w"(a));
#endif
}

} // namespace pairs

#include "kernel/attention_product-inl.hpp"
#undef MASKWISE_PRODUCT_ATTR
#undef MASKWISE_PRODUCTS

#endif

#if HWY_TARGET == HWY_AVX3
constexpr auto* multiply_pairs = pairs::multiply;
#else
constexpr void (*multiply_pairs)(const panel_product&) = nullptr; // of a table of their own
#endif

// One element of a side for each query, or one for all.
HWY_ATTR HWY_INLINE row_v biases(const panel_scores& what, std::int64_t key, std::int64_t lane) {
    if (what.bias_step == 1) return hn::Set(row_d(), what.bias[key]);
    return hn::LoadU(row_d(), what.bias + key * what.bias_step + lane);
}

HWY_ATTR HWY_INLINE row_v kept_by_cond(const panel_scores& what, std::int64_t key,
                                       std::int64_t lane, row_v score, row_v fill) {
    if (what.cond_step != 1) return selected(what.cond + key * what.cond_step + lane, score, fill);
    const hn::RebindToSigned<row_d> di; // no branch: random padding would be mispredicted
    const auto is_true =
        hn::Ne(hn::Set(di, std::to_integer<std::int32_t>(what.cond[key])), hn::Zero(di));
    return hn::IfThenElse(hn::RebindMask(row_d(), is_true), score, fill);
}

HWY_ATTR HWY_INLINE auto is_in_span(const std::int32_t* span, std::int64_t key) {
    const hn::RebindToSigned<row_d> di;
    const hn::RebindToUnsigned<row_d> du;
    const auto since_first =
        hn::Sub(hn::Set(di, static_cast<std::int32_t>(key)), hn::LoadU(di, span));
    const auto count = hn::LoadU(di, span + 2 * row_lanes());
    return hn::Lt(hn::BitCast(du, since_first), hn::BitCast(du, count));
}

HWY_ATTR HWY_INLINE row_v kept_by_spans(const panel_scores& what, std::int64_t key,
                                        std::int64_t lane, row_v score, row_v fill) {
    auto is_kept = is_in_span(what.spans + lane, key);
    if (what.has_second_span)
        is_kept = hn::Or(is_kept, is_in_span(what.spans + 4 * row_lanes() + lane, key));
    return hn::IfThenElse(hn::RebindMask(row_d(), is_kept), score, fill);
}

HWY_ATTR HWY_INLINE row_v scaled(const score_steps& steps, std::size_t first, std::size_t last,
                                 row_v score) {
    for (std::size_t i = first; i < last; ++i) {
        const auto number = hn::Set(row_d(), steps.factors[i].number);
        score = steps.factors[i].divides ? hn::Div(score, number) : hn::Mul(score, number);
    }
    return score;
}

// What bias and mask make of a score behind its factors.
HWY_ATTR HWY_INLINE row_v masked_score(const panel_scores& what, std::int64_t key,
                                       std::int64_t lane, row_v score, row_v fill) {
    const bool has_bias = what.bias != nullptr;
    if (has_bias && !what.bias_on_fill) score = hn::Add(score, biases(what, key, lane));
    if (what.cond != nullptr) score = kept_by_cond(what, key, lane, score, fill);
    if (what.spans != nullptr) score = kept_by_spans(what, key, lane, score, fill);
    if (has_bias && what.bias_on_fill) score = hn::Add(score, biases(what, key, lane));
    return score;
}

HWY_ATTR HWY_INLINE row_v after_steps(const score_steps& steps, row_v score) {
    if (steps.has_tanh) score = hn::Tanh(row_d(), scaled(steps, 0, steps.before_tanh, score));
    return scaled(steps, steps.before_tanh, steps.count, score);
}

// Where there are no steps the factor is 1.
HWY_ATTR HWY_INLINE bool is_one_product(const score_steps& steps) {
    return steps.count <= 1 && !steps.has_tanh && !steps.factors[0].divides;
}

// The largest score of each query; scores of a tile that is kept as it is are not written again.
HWY_ATTR HWY_INLINE row_v largest_score(const float* at, std::int64_t keys) {
    const row_d d;
    const std::int64_t panel = 2 * row_lanes();
    auto largest = hn::Set(d, row_minus_infinity);
    for (; keys > 0; --keys, at += panel) largest = hn::Max(largest, hn::LoadU(d, at));
    return largest;
}

// `steps` makes of a score what its factors make of it.
template <class Steps>
HWY_ATTR HWY_INLINE row_v finish_scores(const panel_scores& what, std::int64_t lane, Steps steps) {
    const row_d d;
    const std::int64_t panel = 2 * row_lanes();
    const auto fill = hn::Set(d, what.fill);
    auto largest = hn::Set(d, row_minus_infinity);
    for (std::int64_t key = 0; key < what.keys; ++key) {
        float* const at = what.scores + key * panel + lane;
        const auto score = masked_score(what, key, lane, steps(hn::LoadU(d, at)), fill);
        hn::StoreU(score, d, at);
        largest = hn::Max(largest, score);
    }
    return largest;
}

HWY_ATTR HWY_INLINE bool is_masked(const panel_scores& what) {
    return what.bias != nullptr || what.cond != nullptr || what.spans != nullptr;
}

// Most tiles of most models.
HWY_ATTR HWY_INLINE row_v multiply_scores(float* at, std::int64_t keys, row_v factor) {
    const row_d d;
    const std::int64_t panel = 2 * row_lanes();
    auto largest = hn::Set(d, row_minus_infinity);
    for (; keys > 0; --keys, at += panel) {
        const auto score = hn::Mul(hn::LoadU(d, at), factor);
        hn::StoreU(score, d, at);
        largest = hn::Max(largest, score);
    }
    return largest;
}

// Finishes scores; returns the largest of each query.
HWY_ATTR HWY_INLINE row_v finish_by_kind(const panel_scores& what, std::int64_t lane) {
    float* const at = what.scores + lane;
    if (!is_masked(what) && what.steps.is_empty()) return largest_score(at, what.keys);
    if (!is_one_product(what.steps))
        return finish_scores(what, lane,
                             [&](row_v score) HWY_ATTR { return after_steps(what.steps, score); });
    const auto factor = hn::Set(row_d(), what.steps.factors[0].number);
    if (!is_masked(what)) return multiply_scores(at, what.keys, factor);
    return finish_scores(what, lane, [&](row_v score) HWY_ATTR { return hn::Mul(score, factor); });
}

// -infinity less itself would be NaN: queries without any score yet are moved by 0.
HWY_ATTR HWY_INLINE row_v shift_of(row_v maximum) {
    const row_d d;
    return hn::IfThenZeroElse(hn::Eq(maximum, hn::Set(d, row_minus_infinity)), maximum);
}

// Scores become weights; returns their sum.
HWY_ATTR HWY_INLINE row_v weights_in_place(float* at, std::int64_t keys, row_v shift) {
    const row_d d;
    const std::int64_t panel = 2 * row_lanes();
    auto sum = hn::Zero(d);
    for (; keys > 0; --keys, at += panel) {
        const auto weight = exp_below_one(hn::Sub(hn::LoadU(d, at), shift));
        hn::StoreU(weight, d, at);
        sum = hn::Add(sum, weight);
    }
    return sum;
}

// The upper halves of two vectors side by side, rounded to nearest even; weights are no NaNs that
// rounding could turn into something else.
HWY_ATTR HWY_INLINE row_v as_pairs(row_v even, row_v odd) {
    const hn::RebindToUnsigned<row_d> du;
    const auto upper = hn::Set(du, 0xFFFF0000U);
    const auto rounded = [&](row_v value) HWY_ATTR {
        const auto bits = hn::BitCast(du, value);
        const auto is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
        return hn::Add(bits, hn::Add(is_odd, hn::Set(du, 0x7FFF)));
    };
    return hn::BitCast(row_d(),
                       hn::Or(hn::ShiftRight<16>(rounded(even)), hn::And(rounded(odd), upper)));
}

// The same, weights of two keys in one place.
HWY_ATTR HWY_INLINE row_v weights_in_pairs(float* first, std::int64_t keys, row_v shift) {
    const row_d d;
    const std::int64_t panel = 2 * row_lanes();
    auto sum = hn::Zero(d);
    const float* from = first;
    for (float* to = first; keys > 0; keys -= 2, from += 2 * panel, to += panel) {
        const auto even = exp_below_one(hn::Sub(hn::LoadU(d, from), shift));
        auto odd = hn::Zero(d);
        if (keys > 1) odd = exp_below_one(hn::Sub(hn::LoadU(d, from + panel), shift));
        hn::StoreU(as_pairs(even, odd), d, to);
        sum = hn::Add(sum, hn::Add(even, odd));
    }
    return sum;
}

HWY_ATTR HWY_INLINE void weigh_vector(const panel_scores& what, const panel_state& state,
                                      float* factor, std::int64_t lane) {
    const row_d d;
    float* const scores = what.scores + lane;
    const auto before = hn::LoadU(d, state.maximum + lane);
    const auto largest = finish_by_kind(what, lane);
    const auto maximum = hn::Max(before, largest), shift = shift_of(maximum);
    const auto sum = what.in_pairs ? weights_in_pairs(scores, what.keys, shift)
                                   : weights_in_place(scores, what.keys, shift);
    const auto less = exp_below_one(hn::Sub(before, shift));
    hn::StoreU(less, d, factor + lane);
    hn::StoreU(maximum, d, state.maximum + lane);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, state.sum + lane), less, sum), d, state.sum + lane);
}

// By value: to the compiler each store to the scores might change it.
HWY_ATTR inline void panel_weigh(const panel_scores& given, const panel_state& state,
                                 float* factor) {
    const panel_scores what = given;
    weigh_vector(what, state, factor, 0);
    if (what.queries > row_lanes()) weigh_vector(what, state, factor, row_lanes());
}

HWY_ATTR inline void panel_finish(const panel_scores& given, float* maximum) {
    const row_d d;
    const panel_scores what = given;
    for (std::int64_t lane = 0; lane < what.queries; lane += row_lanes()) {
        const auto largest = finish_by_kind(what, lane);
        hn::StoreU(hn::Max(hn::LoadU(d, maximum + lane), largest), d, maximum + lane);
    }
}

HWY_ATTR inline void panel_exponentiate(const panel_scores& what, const panel_state& state) {
    const row_d d;
    for (std::int64_t lane = 0; lane < what.queries; lane += row_lanes()) {
        const auto shift = shift_of(hn::LoadU(d, state.maximum + lane));
        const auto sum = weights_in_place(what.scores + lane, what.keys, shift);
        hn::StoreU(hn::Add(hn::LoadU(d, state.sum + lane), sum), d, state.sum + lane);
    }
}

HWY_ATTR HWY_INLINE row_v rounded(row_v weight, row_type type) {
    if (type == row_type::bf16) return changed<row_operator::round_bf16>(weight);
    return type == row_type::f16 ? rounded_to_f16(weight) : weight;
}

HWY_ATTR HWY_INLINE void normalize_vector(const panel_scores& what, row_v factor, row_type type,
                                          std::int64_t lane) {
    const row_d d;
    const std::int64_t panel = 2 * row_lanes();
    float* at = what.scores + lane;
    for (std::int64_t key = 0; key < what.keys; ++key, at += panel)
        hn::StoreU(rounded(hn::Mul(hn::LoadU(d, at), factor), type), d, at);
}

HWY_ATTR HWY_INLINE void normalize_pairs(const panel_scores& what, row_v factor,
                                         std::int64_t lane) {
    const row_d d;
    const std::int64_t panel = 2 * row_lanes();
    const float* from = what.scores + lane;
    float* to = what.scores + lane;
    for (std::int64_t keys = what.keys; keys > 0; keys -= 2, from += 2 * panel, to += panel) {
        const auto even = hn::Mul(hn::LoadU(d, from), factor);
        const auto odd = keys > 1 ? hn::Mul(hn::LoadU(d, from + panel), factor) : hn::Zero(d);
        hn::StoreU(as_pairs(even, odd), d, to);
    }
}

HWY_ATTR inline void panel_normalize(const panel_scores& what, const float* factor, row_type type) {
    for (std::int64_t lane = 0; lane < what.queries; lane += row_lanes()) {
        const auto factors = hn::LoadU(row_d(), factor + lane);
        if (what.in_pairs)
            normalize_pairs(what, factors, lane);
        else
            normalize_vector(what, factors, type, lane);
    }
}

HWY_ATTR HWY_INLINE void merge_vector(const panel_state& into, const panel_state& from,
                                      std::int64_t values_step, std::int64_t columns,
                                      std::int64_t lane) {
    const row_d d;
    const std::int64_t panel = 2 * row_lanes();
    const auto max_0 = hn::LoadU(d, into.maximum + lane), max_1 = hn::LoadU(d, from.maximum + lane);
    const auto maximum = hn::Max(max_0, max_1), shift = shift_of(maximum);
    const auto less_0 = exp_below_one(hn::Sub(max_0, shift));
    const auto less_1 = exp_below_one(hn::Sub(max_1, shift));
    const auto joined = [&](row_v a, row_v b)
                            HWY_ATTR { return hn::MulAdd(a, less_0, hn::Mul(b, less_1)); };
    hn::StoreU(maximum, d, into.maximum + lane);
    hn::StoreU(joined(hn::LoadU(d, into.sum + lane), hn::LoadU(d, from.sum + lane)), d,
               into.sum + lane);
    for (std::int64_t c = 0; c < columns; ++c) {
        float* const at = into.values + c * panel + lane;
        const auto other = values_step == 1 ? hn::Set(d, from.values[c])
                                            : hn::LoadU(d, from.values + c * values_step + lane);
        hn::StoreU(joined(hn::LoadU(d, at), other), d, at);
    }
}

HWY_ATTR inline void panel_merge(const panel_state& into, const panel_state& from,
                                 std::int64_t values_step, std::int64_t columns,
                                 std::int64_t queries) {
    for (std::int64_t lane = 0; lane < queries; lane += row_lanes())
        merge_vector(into, from, values_step, columns, lane);
}

HWY_ATTR inline std::int64_t panel_queries() {
    return 2 * row_lanes();
}

constexpr attention_kernels attention{
    panel_queries, singles::multiply,  multiply_pairs,  panel_weigh,
    panel_finish,  panel_exponentiate, panel_normalize, panel_merge,
    rows_as_f32,   rows_as_pairs,      panel_load,      panel_load_conds,
    see_rows,      largest_norm,       panel_add_rows,  panel_store};

#include "kernel/attention_tiles-inl.hpp"
