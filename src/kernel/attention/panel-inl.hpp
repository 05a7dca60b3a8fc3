// Row operations of attention on a panel, for one Highway target. `Panel` says where in a vector
// the numbers of a query are.

#if defined(MASKWISE_KERNEL_ATTENTION_PANEL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_PANEL_INL
#undef MASKWISE_KERNEL_ATTENTION_PANEL_INL
#else
#define MASKWISE_KERNEL_ATTENTION_PANEL_INL
#endif

#include "kernel/attention/contract.hpp"
#include "kernel/rows/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// Two vectors of queries: each number of a vector is another query's.
struct wide_panel {
    HWY_ATTR HWY_INLINE static std::int64_t queries() { return 2 * row_lanes(); }
    // Of keys, or columns, which a vector holds; the floats from one vector's keys to the next's.
    HWY_ATTR HWY_INLINE static std::int64_t keys_at_once() { return 1; }
    HWY_ATTR HWY_INLINE static std::int64_t step() { return queries(); }

    // A number of each query.
    template <class D>
    HWY_ATTR HWY_INLINE static hn::VFromD<D> load(D d, const hn::TFromD<D>* from) {
        return hn::LoadU(d, from);
    }
    HWY_ATTR HWY_INLINE static void store(row_v values, float* to) {
        hn::StoreU(values, row_d(), to);
    }
    // Of the numbers of each query in the vector one.
    template <class Join>
    HWY_ATTR HWY_INLINE static row_v across(row_v values, const Join&) {
        return values;
    }
    // `otherwise` behind the last of these keys.
    HWY_ATTR HWY_INLINE static row_v limited(row_v values, std::int64_t, row_v) { return values; }
    // A number of each key.
    HWY_ATTR HWY_INLINE static row_v of_keys(const float* from) { return hn::Set(row_d(), *from); }
    HWY_ATTR HWY_INLINE static auto numbers_of_keys(std::int64_t key) {
        return hn::Set(hn::RebindToSigned<row_d>(), static_cast<std::int32_t>(key));
    }
    // Without a branch: random padding would be mispredicted.
    HWY_ATTR HWY_INLINE static row_v kept_by_key(const std::byte* cond, row_v score, row_v fill) {
        const auto is_true = hn::Ne(numbers_of_keys(std::to_integer<std::int64_t>(*cond)),
                                    hn::Zero(hn::RebindToSigned<row_d>()));
        return hn::IfThenElse(hn::RebindMask(row_d(), is_true), score, fill);
    }
};

// One element of a side for each query, or one for all.
template <class Panel>
HWY_ATTR HWY_INLINE row_v biases(const panel_scores& what, std::int64_t key, std::int64_t lane) {
    if (what.bias_step == 1) return Panel::of_keys(what.bias + key);
    return hn::LoadU(row_d(), what.bias + key * what.bias_step + lane);
}

template <class Panel>
HWY_ATTR HWY_INLINE row_v kept_by_cond(const panel_scores& what, std::int64_t key,
                                       std::int64_t lane, row_v score, row_v fill) {
    if (what.cond_step != 1) return selected(what.cond + key * what.cond_step + lane, score, fill);
    return Panel::kept_by_key(what.cond + key, score, fill);
}

template <class Panel>
HWY_ATTR HWY_INLINE auto is_in_span(const std::int32_t* span, std::int64_t key) {
    const hn::RebindToSigned<row_d> di;
    const hn::RebindToUnsigned<row_d> du;
    const auto since_first = hn::Sub(Panel::numbers_of_keys(key), Panel::load(di, span));
    const auto count = Panel::load(di, span + Panel::queries());
    return hn::Lt(hn::BitCast(du, since_first), hn::BitCast(du, count));
}

template <class Panel>
HWY_ATTR HWY_INLINE row_v kept_by_spans(const panel_scores& what, std::int64_t key,
                                        std::int64_t lane, row_v score, row_v fill) {
    auto is_kept = is_in_span<Panel>(what.spans + lane, key);
    if (what.has_second_span)
        is_kept = hn::Or(is_kept, is_in_span<Panel>(what.spans + 2 * Panel::queries() + lane, key));
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
template <class Panel>
HWY_ATTR HWY_INLINE row_v masked_score(const panel_scores& what, std::int64_t key,
                                       std::int64_t lane, row_v score, row_v fill) {
    const bool has_bias = what.bias != nullptr;
    if (has_bias && !what.bias_on_fill) score = hn::Add(score, biases<Panel>(what, key, lane));
    if (what.cond != nullptr) score = kept_by_cond<Panel>(what, key, lane, score, fill);
    if (what.spans != nullptr) score = kept_by_spans<Panel>(what, key, lane, score, fill);
    if (has_bias && what.bias_on_fill) score = hn::Add(score, biases<Panel>(what, key, lane));
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
template <class Panel>
HWY_ATTR HWY_INLINE row_v largest_score(const float* at, std::int64_t keys) {
    const row_d d;
    const auto lowest = hn::Set(d, row_minus_infinity);
    auto largest = lowest, largest_of_next = lowest; // two chains hide the latency
    const std::int64_t both = 2 * Panel::keys_at_once();
    for (; keys >= both; keys -= both, at += 2 * Panel::step()) {
        largest = hn::Max(largest, hn::LoadU(d, at));
        largest_of_next = hn::Max(largest_of_next, hn::LoadU(d, at + Panel::step()));
    }
    for (; keys > 0; keys -= Panel::keys_at_once(), at += Panel::step())
        largest = hn::Max(largest, Panel::limited(hn::LoadU(d, at), keys, lowest));
    return hn::Max(largest, largest_of_next);
}

// `steps` makes of a score what its factors make of it.
template <class Panel, class Steps>
HWY_ATTR HWY_INLINE row_v finish_scores(const panel_scores& what, std::int64_t lane, Steps steps) {
    const row_d d;
    const auto fill = hn::Set(d, what.fill), lowest = hn::Set(d, row_minus_infinity);
    auto largest = lowest;
    for (std::int64_t key = 0; key < what.keys; key += Panel::keys_at_once()) {
        float* const at = what.scores + key * Panel::queries() + lane;
        const auto score = masked_score<Panel>(what, key, lane, steps(hn::LoadU(d, at)), fill);
        hn::StoreU(score, d, at);
        largest = hn::Max(largest, Panel::limited(score, what.keys - key, lowest));
    }
    return largest;
}

HWY_ATTR HWY_INLINE bool is_masked(const panel_scores& what) {
    return what.bias != nullptr || what.cond != nullptr || what.spans != nullptr;
}

// Most tiles of most models.
template <class Panel>
HWY_ATTR HWY_INLINE row_v multiply_scores(float* at, std::int64_t keys, row_v factor) {
    const row_d d;
    const auto lowest = hn::Set(d, row_minus_infinity);
    auto largest = lowest;
    for (; keys > 0; keys -= Panel::keys_at_once(), at += Panel::step()) {
        const auto score = hn::Mul(hn::LoadU(d, at), factor);
        hn::StoreU(score, d, at);
        largest = hn::Max(largest, Panel::limited(score, keys, lowest));
    }
    return largest;
}

template <class Panel>
HWY_ATTR HWY_INLINE row_v finish_by_kind(const panel_scores& what, std::int64_t lane) {
    float* const at = what.scores + lane;
    if (!is_masked(what) && what.steps.is_empty()) return largest_score<Panel>(at, what.keys);
    if (!is_one_product(what.steps))
        return finish_scores<Panel>(
            what, lane, [&](row_v score) HWY_ATTR { return after_steps(what.steps, score); });
    const auto factor = hn::Set(row_d(), what.steps.factors[0].number);
    if (!is_masked(what)) return multiply_scores<Panel>(at, what.keys, factor);
    return finish_scores<Panel>(what, lane,
                                [&](row_v score) HWY_ATTR { return hn::Mul(score, factor); });
}

// Finishes scores; returns the largest of each query, and of those before.
template <class Panel>
HWY_ATTR HWY_INLINE row_v finish_vector(const panel_scores& what, std::int64_t lane, row_v before) {
    const auto largest = finish_by_kind<Panel>(what, lane);
    return hn::Max(before,
                   Panel::across(largest, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); }));
}

template <class Panel>
HWY_ATTR HWY_INLINE row_v sum_of_keys(row_v sums) {
    return Panel::across(sums, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

// -infinity less itself would be NaN: queries without any score yet are moved by 0.
HWY_ATTR HWY_INLINE row_v shift_of(row_v maximum) {
    const row_d d;
    return hn::IfThenZeroElse(hn::Eq(maximum, hn::Set(d, row_minus_infinity)), maximum);
}

// Scores become weights; returns their sum.
template <class Panel>
HWY_ATTR HWY_INLINE row_v weights_in_place(float* at, std::int64_t keys, row_v shift) {
    const row_d d;
    auto sum = hn::Zero(d);
    for (; keys > 0; keys -= Panel::keys_at_once(), at += Panel::step()) {
        const auto weight = exp_below_one(hn::Sub(hn::LoadU(d, at), shift));
        hn::StoreU(weight, d, at);
        sum = hn::Add(sum, Panel::limited(weight, keys, hn::Zero(d)));
    }
    return sum_of_keys<Panel>(sum);
}

// The upper halves of two vectors side by side, rounded to nearest even; weights are no NaNs that
// rounding could turn into something else.
HWY_ATTR HWY_INLINE row_v as_pairs(row_v even, row_v odd) {
    const hn::RebindToUnsigned<row_d> du;
    const auto rounded = [&](row_v value) HWY_ATTR {
        const auto bits = hn::BitCast(du, value);
        const auto is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
        return hn::Add(bits, hn::Add(is_odd, hn::Set(du, 0x7FFF)));
    };
    return hn::BitCast(row_d(), hn::OrAnd(hn::ShiftRight<16>(rounded(even)), rounded(odd),
                                          hn::Set(du, 0xFFFF0000U)));
}

// The same with ties away from zero, in half as many instructions.
HWY_ATTR HWY_INLINE row_v as_pairs_quickly(row_v even, row_v odd) {
    const hn::RebindToUnsigned<row_d> du;
    const auto half = hn::Set(du, 0x8000);
    return hn::BitCast(row_d(),
                       hn::OrAnd(hn::ShiftRight<16>(hn::Add(hn::BitCast(du, even), half)),
                                 hn::Add(hn::BitCast(du, odd), half), hn::Set(du, 0xFFFF0000U)));
}

// exp(x) for a weight that becomes bf16: relative error below 2^-17, exact for 0. What is below
// 2^-126 may be 0, since products of bf16 read it as 0.
HWY_ATTR HWY_INLINE row_v exp_of_pair(row_v x) {
#if HWY_TARGET == HWY_AVX3
    constexpr int floor_quietly = 9;
    const row_d d;
    const auto power = hn::Mul(x, hn::Set(d, 1.44269504F));
    const row_v f{_mm512_reduce_ps(power.raw, floor_quietly)};
    auto p = hn::MulAdd(hn::Set(d, 1.355574746e-02F), f, hn::Set(d, 5.203237012e-02F));
    p = hn::MulAdd(p, f, hn::Set(d, 2.413797677e-01F));
    p = hn::MulAdd(p, f, hn::Set(d, 6.930321455e-01F));
    p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
    const __mmask16 is_normal = _mm512_cmp_ps_mask(power.raw, _mm512_set1_ps(-126), _CMP_NLT_UQ);
    return row_v{_mm512_maskz_scalef_ps(is_normal, p.raw, power.raw)};
#else
    return exp_below_one(x);
#endif
}

// Scores become weights exp(score * factor - shift), those of two keys in one place; returns their
// sum.
HWY_ATTR HWY_INLINE row_v weights_in_pairs(float* first, std::int64_t keys, row_v factor,
                                           row_v shift) {
    const row_d d;
    const std::int64_t panel = 2 * row_lanes();
    const auto weight = [&](const float* score) HWY_ATTR {
        return exp_of_pair(hn::MulSub(hn::LoadU(d, score), factor, shift));
    };
    auto sum = hn::Zero(d);
    const float* from = first;
    for (float* to = first; keys > 0; keys -= 2, from += 2 * panel, to += panel) {
        const auto even = weight(from);
        const auto odd = keys > 1 ? weight(from + panel) : hn::Zero(d);
        hn::StoreU(as_pairs_quickly(even, odd), d, to);
        sum = hn::Add(sum, hn::Add(even, odd));
    }
    return sum;
}

// Weights in pairs of a tile that is kept as it is: its scores are multiplied on the way. Not by
// more than 1, which could make a score infinite only where it is rounded.
HWY_ATTR HWY_INLINE bool is_multiplied_late(const panel_scores& what) {
    const float factor = what.steps.factors[0].number;
    return what.in_pairs && !is_masked(what) && is_one_product(what.steps) && factor > 0 &&
           factor <= 1;
}

template <class Panel>
HWY_ATTR HWY_INLINE void weigh_vector(const panel_scores& what, const panel_state& state,
                                      float* factor, std::int64_t lane) {
    const row_d d;
    float* const scores = what.scores + lane;
    const auto before = Panel::load(d, state.maximum + lane);
    const bool is_late = is_multiplied_late(what);
    const auto factor_of_scores = hn::Set(d, is_late ? what.steps.factors[0].number : 1);
    const auto maximum =
        is_late
            ? hn::Max(before, hn::Mul(largest_score<Panel>(scores, what.keys), factor_of_scores))
            : finish_vector<Panel>(what, lane, before);
    const auto shift = shift_of(maximum);
    const auto sum = what.in_pairs ? weights_in_pairs(scores, what.keys, factor_of_scores, shift)
                                   : weights_in_place<Panel>(scores, what.keys, shift);
    const auto less = exp_below_one(hn::Sub(before, shift));
    Panel::store(less, factor + lane);
    Panel::store(maximum, state.maximum + lane);
    Panel::store(hn::MulAdd(Panel::load(d, state.sum + lane), less, sum), state.sum + lane);
}

// By value: to the compiler each store to the scores might change it.
template <class Panel>
HWY_ATTR void panel_weigh(const panel_scores& given, const panel_state& state, float* factor) {
    const panel_scores what = given;
    weigh_vector<Panel>(what, state, factor, 0);
    if (what.queries > row_lanes()) weigh_vector<Panel>(what, state, factor, row_lanes());
}

template <class Panel>
HWY_ATTR void panel_finish(const panel_scores& given, float* maximum) {
    const panel_scores what = given;
    for (std::int64_t lane = 0; lane < what.queries; lane += row_lanes()) {
        const auto before = Panel::load(row_d(), maximum + lane);
        Panel::store(finish_vector<Panel>(what, lane, before), maximum + lane);
    }
}

template <class Panel>
HWY_ATTR void panel_exponentiate(const panel_scores& what, const panel_state& state) {
    const row_d d;
    for (std::int64_t lane = 0; lane < what.queries; lane += row_lanes()) {
        const auto shift = shift_of(Panel::load(d, state.maximum + lane));
        const auto sum = weights_in_place<Panel>(what.scores + lane, what.keys, shift);
        Panel::store(hn::Add(Panel::load(d, state.sum + lane), sum), state.sum + lane);
    }
}

HWY_ATTR HWY_INLINE row_v rounded(row_v weight, row_type type) {
    if (type == row_type::bf16) return changed<row_operator::round_bf16>(weight);
    return type == row_type::f16 ? rounded_to_f16(weight) : weight;
}

template <class Panel>
HWY_ATTR HWY_INLINE void normalize_vector(const panel_scores& what, row_v factor, row_type type,
                                          std::int64_t lane) {
    const row_d d;
    float* at = what.scores + lane;
    for (std::int64_t keys = what.keys; keys > 0;
         keys -= Panel::keys_at_once(), at += Panel::step())
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

template <class Panel>
HWY_ATTR void panel_normalize(const panel_scores& what, const float* factor, row_type type) {
    for (std::int64_t lane = 0; lane < what.queries; lane += row_lanes()) {
        const auto factors = Panel::load(row_d(), factor + lane);
        if (what.in_pairs)
            normalize_pairs(what, factors, lane);
        else
            normalize_vector<Panel>(what, factors, type, lane);
    }
}

// Joins maxima and sums; `less_0` and `less_1` become the factors of the values.
template <class Panel>
HWY_ATTR HWY_INLINE void merge_sums(const panel_state& into, const panel_state& from,
                                    std::int64_t lane, float* less_0, float* less_1) {
    const row_d d;
    const auto max_0 = Panel::load(d, into.maximum + lane);
    const auto max_1 = Panel::load(d, from.maximum + lane);
    const auto maximum = hn::Max(max_0, max_1), shift = shift_of(maximum);
    const auto of_0 = exp_below_one(hn::Sub(max_0, shift));
    const auto of_1 = exp_below_one(hn::Sub(max_1, shift));
    const auto sum = hn::MulAdd(Panel::load(d, into.sum + lane), of_0,
                                hn::Mul(Panel::load(d, from.sum + lane), of_1));
    Panel::store(maximum, into.maximum + lane);
    Panel::store(sum, into.sum + lane);
    Panel::store(of_0, less_0);
    Panel::store(of_1, less_1);
}

HWY_ATTR inline void panel_merge(const panel_state& into, const panel_state& from,
                                 std::int64_t values_step, std::int64_t columns,
                                 std::int64_t queries) {
    const row_d d;
    float less[2 * row_block_elems];
    for (std::int64_t lane = 0; lane < queries; lane += row_lanes()) {
        merge_sums<wide_panel>(into, from, lane, less, less + row_block_elems);
        const auto less_0 = hn::LoadU(d, less), less_1 = hn::LoadU(d, less + row_block_elems);
        for (std::int64_t c = 0; c < columns; ++c) {
            float* const at = into.values + c * wide_panel::queries() + lane;
            const auto other = values_step == 1
                                   ? hn::Set(d, from.values[c])
                                   : hn::LoadU(d, from.values + c * values_step + lane);
            hn::StoreU(hn::MulAdd(hn::LoadU(d, at), less_0, hn::Mul(other, less_1)), d, at);
        }
    }
}

HWY_ATTR inline void panel_join_sums(float* values, const float* sums, const float* factor,
                                     std::int64_t first, std::int64_t last, std::int64_t columns) {
    const row_d d;
    const hn::RebindToUnsigned<row_d> du;
    const auto count = hn::Set(du, static_cast<std::uint32_t>(last - first));
    for (std::int64_t lane = 0; lane < last; lane += row_lanes()) {
        const auto since_first = hn::Iota(du, static_cast<std::uint32_t>(lane - first));
        const auto is_own = hn::RebindMask(d, hn::Lt(since_first, count));
        for (std::int64_t c = 0; c < columns; ++c) {
            const std::int64_t at = c * wide_panel::queries() + lane;
            const auto before = hn::LoadU(d, values + at);
            auto sum = hn::LoadU(d, sums + at);
            if (factor != nullptr) sum = hn::MulAdd(before, hn::LoadU(d, factor + lane), sum);
            hn::StoreU(hn::IfThenElse(is_own, sum, before), d, values + at);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_PANEL_INL
