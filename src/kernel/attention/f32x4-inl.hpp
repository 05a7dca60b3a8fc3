// Vectors as blocks of four floats, for one Highway target: one block holds one number per query of
// a panel of four.

#if defined(MASKWISE_KERNEL_ATTENTION_F32X4_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_F32X4_INL
#undef MASKWISE_KERNEL_ATTENTION_F32X4_INL
#else
#define MASKWISE_KERNEL_ATTENTION_F32X4_INL
#endif

#include "kernel/rows/elements-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

using f32x4_tag = hn::FixedTag<float, 4>;
using f32x4 = hn::VFromD<f32x4_tag>;

// Combines all blocks of a vector into one block.
template <class V, class Combine>
HWY_ATTR HWY_INLINE f32x4 reduce_blocks(V value, const Combine& combine) {
    using whole = hn::DFromV<V>;
    const hn::Half<whole> half;
    if constexpr (hn::MaxLanes(whole()) == 4)
        return value;
    else
        return reduce_blocks(combine(hn::LowerHalf(half, value), hn::UpperHalf(half, value)),
                             combine);
}

// The sum of the lanes of each vector. Transposes each block of 4 x 4 numbers, then adds all
// vectors and blocks.
HWY_ATTR HWY_INLINE f32x4 sum_lanes(const vec_f32 (&v)[4]) {
    const f32_tag d;
    const hn::RepartitionToWide<hn::RebindToUnsigned<f32_tag>> pairs;
    const auto lower_01 = hn::BitCast(pairs, hn::InterleaveLower(d, v[0], v[1]));
    const auto upper_01 = hn::BitCast(pairs, hn::InterleaveUpper(d, v[0], v[1]));
    const auto lower_23 = hn::BitCast(pairs, hn::InterleaveLower(d, v[2], v[3]));
    const auto upper_23 = hn::BitCast(pairs, hn::InterleaveUpper(d, v[2], v[3]));
    const auto first = hn::BitCast(d, hn::InterleaveLower(pairs, lower_01, lower_23));
    const auto second = hn::BitCast(d, hn::InterleaveUpper(pairs, lower_01, lower_23));
    const auto third = hn::BitCast(d, hn::InterleaveLower(pairs, upper_01, upper_23));
    const auto fourth = hn::BitCast(d, hn::InterleaveUpper(pairs, upper_01, upper_23));
    return reduce_blocks(hn::Add(hn::Add(first, second), hn::Add(third, fourth)),
                         [](auto x, auto y) HWY_ATTR { return hn::Add(x, y); });
}

#endif

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_F32X4_INL
