// Vectors in blocks of four floats, for one Highway target: a panel of four queries has their
// numbers side by side.

#if HWY_TARGET != HWY_SCALAR

using four_d = hn::FixedTag<float, 4>;
using four_v = hn::VFromD<four_d>;

// Sums of four queries by rows of a, or by vectors of columns: number 4 * row + query. Vectors of
// unknown length cannot stand in arrays, so sums have names.
#ifndef MASKWISE_FEW_SUMS
#define MASKWISE_FEW_SUMS(each)                                                                    \
    each(0) each(1) each(2) each(3) each(4) each(5) each(6) each(7) each(8) each(9) each(10)       \
        each(11) each(12) each(13) each(14) each(15)
#define MASKWISE_FEW_FOURS(each)                                                                   \
    each(0, 0, 1, 2, 3) each(1, 4, 5, 6, 7) each(2, 8, 9, 10, 11) each(3, 12, 13, 14, 15)
#endif

// Transposes each block of four by four.
HWY_ATTR HWY_INLINE void turn_fours(row_v& a, row_v& b, row_v& c, row_v& e) {
    const row_d d;
    const hn::RepartitionToWide<hn::RebindToUnsigned<row_d>> pairs;
    const auto lower_ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
    const auto upper_ab = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
    const auto lower_ce = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
    const auto upper_ce = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
    a = hn::BitCast(d, hn::InterleaveLower(pairs, lower_ab, lower_ce));
    b = hn::BitCast(d, hn::InterleaveUpper(pairs, lower_ab, lower_ce));
    c = hn::BitCast(d, hn::InterleaveLower(pairs, upper_ab, upper_ce));
    e = hn::BitCast(d, hn::InterleaveUpper(pairs, upper_ab, upper_ce));
}

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

// The sum of the lanes of each.
HWY_ATTR HWY_INLINE four_v sums_of_four(row_v a, row_v b, row_v c, row_v e) {
    turn_fours(a, b, c, e);
    return joined_blocks(hn::Add(hn::Add(a, b), hn::Add(c, e)),
                         [](auto x, auto y) HWY_ATTR { return hn::Add(x, y); });
}

#endif
