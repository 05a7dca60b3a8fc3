// Vectors in blocks of four floats, for one Highway target: a panel of four queries has their
// numbers side by side.

#if defined(MASKWISE_KERNEL_ATTENTION_FOURS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_FOURS_INL
#undef MASKWISE_KERNEL_ATTENTION_FOURS_INL
#else
#define MASKWISE_KERNEL_ATTENTION_FOURS_INL
#endif

#include "kernel/rows/elements-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

using four_d = hn::FixedTag<float, 4>;
using four_v = hn::VFromD<four_d>;

// What `join` makes of a vector's blocks.
template <class V, class Join>
HWY_ATTR HWY_INLINE four_v joined_blocks(V value, const Join& join) {
    using whole = hn::DFromV<V>;
    const hn::Half<whole> half;
    if constexpr (hn::MaxLanes(whole()) == 4)
        return value;
    else
        return joined_blocks(join(hn::LowerHalf(half, value), hn::UpperHalf(half, value)), join);
}

// The sum of the lanes of each. Each block of four by four is transposed, then all are added.
HWY_ATTR HWY_INLINE four_v sums_of_four(const row_v (&v)[4]) {
    const row_d d;
    const hn::RepartitionToWide<hn::RebindToUnsigned<row_d>> pairs;
    const auto lower_01 = hn::BitCast(pairs, hn::InterleaveLower(d, v[0], v[1]));
    const auto upper_01 = hn::BitCast(pairs, hn::InterleaveUpper(d, v[0], v[1]));
    const auto lower_23 = hn::BitCast(pairs, hn::InterleaveLower(d, v[2], v[3]));
    const auto upper_23 = hn::BitCast(pairs, hn::InterleaveUpper(d, v[2], v[3]));
    const auto first = hn::BitCast(d, hn::InterleaveLower(pairs, lower_01, lower_23));
    const auto second = hn::BitCast(d, hn::InterleaveUpper(pairs, lower_01, lower_23));
    const auto third = hn::BitCast(d, hn::InterleaveLower(pairs, upper_01, upper_23));
    const auto fourth = hn::BitCast(d, hn::InterleaveUpper(pairs, upper_01, upper_23));
    return joined_blocks(hn::Add(hn::Add(first, second), hn::Add(third, fourth)),
                         [](auto x, auto y) HWY_ATTR { return hn::Add(x, y); });
}

#endif

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_FOURS_INL
