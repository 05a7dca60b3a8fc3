// Weights as bf16 pairs, for one Highway target.

#if defined(MASKWISE_KERNEL_ATTENTION_PAIRS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_PAIRS_INL
#undef MASKWISE_KERNEL_ATTENTION_PAIRS_INL
#else
#define MASKWISE_KERNEL_ATTENTION_PAIRS_INL
#endif

#include "kernel/rows/rows-inl.hpp"

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// Replaces each NaN by a NaN that survives rounding to bf16. Rounding would turn a NaN whose
// payload is nearly all ones into a zero.
HWY_ATTR HWY_INLINE vec_f32 with_short_nans(vec_f32 value) {
    const auto short_nan = hn::Set(f32_tag(), std::numeric_limits<float>::quiet_NaN());
    return hn::IfThenElse(hn::IsNaN(value), short_nan, value);
}

// Rounds two vectors to bf16 pairs, to nearest even. May lose a NaN. For weights, the row's f32 sum
// still makes the result NaN. NaNs of gradients stay: they are from bf16 or with_short_nans.
HWY_ATTR HWY_INLINE vec_f32 round_to_pairs(vec_f32 even, vec_f32 odd) {
    const hn::RebindToUnsigned<f32_tag> du;
    const auto rounded = [&](vec_f32 value) HWY_ATTR {
        const auto bits = hn::BitCast(du, value);
        const auto is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
        return hn::Add(bits, hn::Add(is_odd, hn::Set(du, 0x7FFF)));
    };
    return hn::BitCast(f32_tag(), hn::OrAnd(hn::ShiftRight<16>(rounded(even)), rounded(odd),
                                            hn::Set(du, 0xFFFF0000U)));
}

// For weights only. Rounds ties away from zero, in fewer instructions. May lose a NaN.
HWY_ATTR HWY_INLINE vec_f32 round_to_pairs_fast(vec_f32 even, vec_f32 odd) {
    const hn::RebindToUnsigned<f32_tag> du;
    const auto half = hn::Set(du, 0x8000);
    return hn::BitCast(f32_tag(),
                       hn::OrAnd(hn::ShiftRight<16>(hn::Add(hn::BitCast(du, even), half)),
                                 hn::Add(hn::BitCast(du, odd), half), hn::Set(du, 0xFFFF0000U)));
}

// exp(x) for x <= 0, for a weight that becomes bf16. Exact for x = 0. Else the relative error is
// below 2^-22 + |x| * 2^-23. bf16 would allow a larger error, but the rows' f32 sums and statistics
// do not. Results below 2^-126 may be 0: bf16 products treat subnormal weights as 0 anyway.
HWY_ATTR HWY_INLINE vec_f32 exp_of_pair(vec_f32 x) {
#if HWY_TARGET == HWY_AVX3
    constexpr int floor_quietly = 9;
    const f32_tag d;
    const auto power = hn::Mul(x, hn::Set(d, 1.44269504F));
    const vec_f32 f{_mm512_reduce_ps(power.raw, floor_quietly)};
    auto p = hn::MulAdd(hn::Set(d, 1.867131679e-03F), f, hn::Set(d, 9.017026983e-03F));
    p = hn::MulAdd(p, f, hn::Set(d, 5.579991639e-02F));
    p = hn::MulAdd(p, f, hn::Set(d, 2.401644439e-01F));
    p = hn::MulAdd(p, f, hn::Set(d, 6.931512952e-01F));
    p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
    const __mmask16 is_normal = _mm512_cmp_ps_mask(power.raw, _mm512_set1_ps(-126), _CMP_NLT_UQ);
    return vec_f32{_mm512_maskz_scalef_ps(is_normal, p.raw, power.raw)};
#else
    return exp_below_one(x);
#endif
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_PAIRS_INL
