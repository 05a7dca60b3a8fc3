// Vectors in blocks of four floats, for one Highway target: a panel of few queries has the numbers
// of its four queries side by side.

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
template <class Join>
HWY_ATTR HWY_INLINE four_v joined_blocks(row_v value, const Join& join) {
    const four_d four;
    float blocks[row_block_elems];
    hn::StoreU(value, row_d(), blocks);
    auto all = hn::LoadU(four, blocks);
    for (std::int64_t i = 4; i < row_lanes(); i += 4) all = join(all, hn::LoadU(four, blocks + i));
    return all;
}

// The sum of the lanes of each.
HWY_ATTR HWY_INLINE four_v sums_of_four(row_v a, row_v b, row_v c, row_v e) {
    turn_fours(a, b, c, e);
    return joined_blocks(hn::Add(hn::Add(a, b), hn::Add(c, e)),
                         [](four_v x, four_v y) HWY_ATTR { return hn::Add(x, y); });
}

// Four numbers side by side for each of `count` lanes: of lane i, from + 4 * i.
HWY_ATTR HWY_INLINE void load_fours(const float* from, std::int64_t count, row_v& a, row_v& b,
                                    row_v& c, row_v& e) {
    const row_d d;
    const four_d four;
    const std::int64_t lanes = row_lanes();
    float places[4 * row_block_elems];
    for (std::int64_t i = 0; i < lanes; ++i)
        hn::StoreU(i < count ? hn::LoadU(four, from + 4 * i) : hn::Zero(four), four,
                   places + i % 4 * lanes + i / 4 * 4);
    a = hn::LoadU(d, places);
    b = hn::LoadU(d, places + lanes);
    c = hn::LoadU(d, places + 2 * lanes);
    e = hn::LoadU(d, places + 3 * lanes);
    turn_fours(a, b, c, e);
}

// The same way back: to = to * factor + sums, or without a factor the sums alone.
HWY_ATTR HWY_INLINE void store_fours(row_v a, row_v b, row_v c, row_v e, const float* factor,
                                     std::int64_t count, float* to) {
    const row_d d;
    const four_d four;
    const std::int64_t lanes = row_lanes();
    turn_fours(a, b, c, e);
    float places[4 * row_block_elems];
    hn::StoreU(a, d, places);
    hn::StoreU(b, d, places + lanes);
    hn::StoreU(c, d, places + 2 * lanes);
    hn::StoreU(e, d, places + 3 * lanes);
    for (std::int64_t i = 0; i < count; ++i, to += 4) {
        auto sum = hn::LoadU(four, places + i % 4 * lanes + i / 4 * 4);
        if (factor != nullptr) sum = hn::MulAdd(hn::LoadU(four, to), hn::LoadU(four, factor), sum);
        hn::StoreU(sum, four, to);
    }
}

#endif
