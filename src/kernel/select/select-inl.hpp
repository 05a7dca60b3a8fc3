// The Select kernels for one Highway target.
//
// Cost for 64 elements of 4 bytes, AVX-512 on Zen 5. The block test takes one load of 64 cond bytes
// and two mask tests. Then each of four vectors takes a widening load of 16 cond bytes, a test, two
// loads of 64 bytes, a blend and a store. All 832 bytes take about 10 cycles, so memory beyond L1
// is the bottleneck and hides the block test.

#if defined(MASKWISE_KERNEL_SELECT_SELECT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_SELECT_SELECT_INL
#undef MASKWISE_KERNEL_SELECT_SELECT_INL
#else
#define MASKWISE_KERNEL_SELECT_SELECT_INL
#endif

#include "kernel/select/sources-inl.hpp"

#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <std::size_t Width, store_policy Store, class S>
HWY_ATTR HWY_INLINE void copy_vector(S src, std::byte* dst, std::size_t i) {
    const typename vectors<Width>::tag d;
    store_vector<Store>(src.load(d, i), d, dst + i * Width);
}

// Copies exactly the elements [i, end). The last vector overlaps the vector before it; selecting
// twice is harmless, even in place. Masked loads and stores are not used. Before AVX-512, a masked
// load may touch an unmapped page. With AVX-512 on Zen 4, masked stores at row ends doubled the
// time of transposed tiles.
template <std::size_t Width, std::size_t Bytes = HWY_MAX(Width, HWY_MAX_BYTES), class S>
HWY_ATTR HWY_INLINE void copy_exactly(S src, std::byte* dst, std::size_t i, std::size_t end) {
    const hn::FixedTag<lane_of<Width>, Bytes / sizeof(lane_of<Width>)> d;
    constexpr std::size_t vector = Bytes / Width;
    if (end - i >= vector) {
        for (; i + vector < end; i += vector)
            store_vector<store_policy::plain>(src.load(d, i), d, dst + i * Width);
        store_vector<store_policy::plain>(src.load(d, end - vector), d,
                                          dst + (end - vector) * Width);
    } else if constexpr (Bytes > Width) {
        if (i < end) copy_exactly<Width, Bytes / 2>(src, dst, i, end);
    }
}

template <std::size_t Width, class S>
HWY_ATTR HWY_INLINE void copy_tail(S src, std::byte* dst, std::size_t i, std::size_t n) {
    const std::size_t vector = vectors<Width>::elements();
    if (i == n) return;
    if (n >= vector)
        copy_vector<Width, store_policy::plain>(src, dst, n - vector);
    else
        copy_exactly<Width>(src, dst, i, n);
}

template <std::size_t Width, store_policy Store, class S>
HWY_ATTR HWY_INLINE void copy_block(S src, std::byte* dst, std::size_t i, std::size_t block) {
    const typename vectors<Width>::tag d;
    for (std::size_t j = 0; j < block; j += vectors<Width>::elements())
        store_vector<Store>(src.load(d, i + j), d, dst + (i + j) * Width);
}

enum class block_mask { all_false, all_true, mixed };

template <std::size_t Width>
HWY_ATTR HWY_INLINE block_mask classify(const std::byte* cond, std::size_t block) {
    const typename vectors<Width>::byte_tag d;
    auto largest = hn::LoadU(d, as_bytes(cond));
    auto smallest = largest;
    for (std::size_t j = hn::Lanes(d); j < block; j += hn::Lanes(d)) {
        const auto v = hn::LoadU(d, as_bytes(cond + j));
        largest = hn::Or(largest, v);
        smallest = hn::Min(smallest, v);
    }
    if (hn::AllTrue(d, hn::Eq(largest, hn::Zero(d)))) return block_mask::all_false;
    if (hn::AllFalse(d, hn::Eq(smallest, hn::Zero(d)))) return block_mask::all_true;
    return block_mask::mixed;
}

// For one-byte elements. A block's masks stay in registers from the test to the blends, because
// loading cond twice is slower.
template <store_policy Store, class S0, class S1>
HWY_ATTR HWY_INLINE void select_block_of_bytes(const std::byte* cond, S0 src_0, S1 src_1,
                                               std::byte* dst, std::size_t i) {
    const vectors<1>::tag d;
    const std::size_t vector = hn::Lanes(d);
    const auto is_false = [=](std::size_t k) HWY_ATTR {
        return hn::Eq(hn::LoadU(d, as_bytes(cond + i + k * vector)), hn::Zero(d));
    };
    const auto m0 = is_false(0), m1 = is_false(1), m2 = is_false(2), m3 = is_false(3);
    if (hn::AllTrue(d, hn::And(hn::And(m0, m1), hn::And(m2, m3)))) {
        if (src_1.row != dst) copy_block<1, Store>(src_1, dst, i, 4 * vector);
    } else if (hn::AllFalse(d, hn::Or(hn::Or(m0, m1), hn::Or(m2, m3)))) {
        if (src_0.row != dst) copy_block<1, Store>(src_0, dst, i, 4 * vector);
    } else {
        const auto select = [=](auto mask, std::size_t k) HWY_ATTR {
            const std::size_t first = i + k * vector;
            store_vector<Store>(hn::IfThenElse(mask, src_1.load(d, first), src_0.load(d, first)), d,
                                dst + first);
        };
        select(m0, 0);
        select(m1, 1);
        select(m2, 2);
        select(m3, 3);
    }
}

template <std::size_t Width>
constexpr bool has_wide_elements = HWY_MAX_BYTES <= 2 * Width;

// Widening cond for each vector of wide elements would cost more than moving the elements. So 16
// cond bytes are tested at once. The result has one byte per element; after each vector, it is
// shifted by the vector's elements.
template <std::size_t Width, store_policy Store, class S0, class S1>
HWY_ATTR HWY_INLINE void select_wide_elements(const std::byte* cond, S0 src_0, S1 src_1,
                                              std::byte* dst, std::size_t i, std::size_t block) {
    constexpr std::size_t step = HWY_MAX_BYTES / Width;
    const typename vectors<Width>::tag d;
    const typename vectors<Width>::byte_tag d8;
    constexpr int shift = Width == 8 ? 3 : 4; // from byte to element index
    const auto element_of_byte = hn::ShiftRight<shift>(hn::Iota(d8, 0));
    for (std::size_t j = i; j < i + block;) {
        const auto cond_bytes = hn::LoadDup128(d8, as_bytes(cond + j));
        auto is_false_bytes = hn::VecFromMask(d8, hn::Eq(cond_bytes, hn::Zero(d8)));
        for (const std::size_t end = j + 16; j < end; j += step) {
            const auto is_false = hn::MaskFromVec(
                hn::BitCast(d, hn::TableLookupBytes(is_false_bytes, element_of_byte)));
            store_vector<Store>(hn::IfThenElse(is_false, src_1.load(d, j), src_0.load(d, j)), d,
                                dst + j * Width);
            is_false_bytes = hn::ShiftRightBytes<step>(d8, is_false_bytes);
        }
    }
}

// If a block's cond bytes are all zero or all nonzero, reads only one source. Writes nothing if
// that source is dst. Blocks of a random mask are mixed, so the branches are predictable.
template <std::size_t Width, store_policy Store, class S0, class S1>
HWY_ATTR HWY_INLINE void select_block(const std::byte* cond, S0 src_0, S1 src_1, std::byte* dst,
                                      std::size_t i, std::size_t block) {
    if constexpr (Width == 1 && masks_are_vectors)
        return select_block_of_bytes<Store>(cond, src_0, src_1, dst, i);
    switch (classify<Width>(cond + i, block)) {
    case block_mask::all_false:
        if (src_1.row != dst) copy_block<Width, Store>(src_1, dst, i, block);
        return;
    case block_mask::all_true:
        if (src_0.row != dst) copy_block<Width, Store>(src_0, dst, i, block);
        return;
    case block_mask::mixed:
        if constexpr (has_wide_elements<Width>)
            return select_wide_elements<Width, Store>(cond, src_0, src_1, dst, i, block);
        copy_block<Width, Store>(selection<Width, S0, S1>{cond, src_0, src_1}, dst, i, block);
    }
}

// Prefetches a later row if its source differs from this row's, because hardware does not predict
// the change (docs/decisions/0006). Rows of the same source are prefetched by hardware.
template <std::size_t Width, column_class C0, column_class C1>
class read_ahead {
public:
    HWY_ATTR HWY_INLINE read_ahead(const select_tile& tile, std::int64_t row) {
        const auto n = static_cast<std::size_t>(tile.columns);
        const auto ahead = static_cast<std::int64_t>(HWY_MAX(1, distance_bytes / (Width * n)));
        if (row + ahead >= tile.rows) return;
        const bool cond_now = element_is_true(tile.cond + row * tile.cond_row_bytes);
        const bool cond_then = element_is_true(tile.cond + (row + ahead) * tile.cond_row_bytes);
        if (cond_now == cond_then || (cond_then ? C0 : C1) != column_class::unit) return;
        ahead_row_ = cond_then ? tile.src_0 + (row + ahead) * tile.src_0_row_bytes
                               : tile.src_1 + (row + ahead) * tile.src_1_row_bytes;
    }

    HWY_ATTR HWY_INLINE void operator()(std::size_t i, std::size_t block) const {
        if (ahead_row_ == nullptr) return;
        for (std::size_t byte = 0; byte < block * Width; byte += 64)
            hwy::Prefetch(ahead_row_ + i * Width + byte);
    }

private:
    static constexpr std::size_t distance_bytes = 4096;
    const std::byte* ahead_row_ = nullptr;
};

// Elements per cache line, or per vector if a vector is longer.
template <std::size_t Width>
HWY_ATTR HWY_INLINE std::size_t line_elements() {
    return HWY_MAX(std::size_t{64} / Width, vectors<Width>::elements());
}

// Returns how many elements precede the row's first full cache line; `n` if no line is full or
// elements straddle lines.
// Only full lines are streamed: an ordinary store would write the rest of a partly streamed line,
// and fetch the line first.
template <std::size_t Width>
HWY_ATTR HWY_INLINE std::size_t elements_to_line(const std::byte* dst, std::size_t n) {
    const std::size_t bytes = (0 - reinterpret_cast<std::uintptr_t>(dst)) % 64;
    const std::size_t before = bytes / Width;
    return bytes % Width != 0 || before + line_elements<Width>() > n ? n : before;
}

template <std::size_t Width, store_policy Store, class S0, class S1>
HWY_ATTR HWY_INLINE void select_row(const std::byte* cond, S0 src_0, S1 src_1, std::byte* dst,
                                    std::size_t n) {
    const selection<Width, S0, S1> selected{cond, src_0, src_1};
    const std::size_t vector = vectors<Width>::elements();
    const std::size_t block = vectors<Width>::block();
    std::size_t i = 0;
    if constexpr (Store == store_policy::stream) {
        const std::size_t first = elements_to_line<Width>(dst, n), line = line_elements<Width>();
        if (first < n) {
            copy_exactly<Width>(selected, dst, 0, first);
            for (i = first; i + block <= n; i += block)
                select_block<Width, Store>(cond, src_0, src_1, dst, i, block);
            for (; i + line <= n; i += line) copy_block<Width, Store>(selected, dst, i, line);
            return copy_exactly<Width>(selected, dst, i, n);
        }
    }
    for (; i + block <= n; i += block)
        select_block<Width, store_policy::plain>(cond, src_0, src_1, dst, i, block);
    for (; i + vector <= n; i += vector) copy_vector<Width, store_policy::plain>(selected, dst, i);
    copy_tail<Width>(selected, dst, i, n);
}

template <std::size_t Width, store_policy Store, class S, class Ahead>
HWY_ATTR HWY_INLINE void move_row(S src, std::byte* dst, std::size_t n, const Ahead& ahead) {
    if (src.row == dst) return;
    const std::size_t vector = vectors<Width>::elements();
    const std::size_t block = vectors<Width>::block();
    std::size_t i = 0;
    if constexpr (Store == store_policy::stream) {
        const std::size_t first = elements_to_line<Width>(dst, n), line = line_elements<Width>();
        if (first < n) {
            copy_exactly<Width>(src, dst, 0, first);
            for (i = first; i + block <= n; i += block) {
                ahead(i, block);
                copy_block<Width, Store>(src, dst, i, block);
            }
            for (; i + line <= n; i += line) copy_block<Width, Store>(src, dst, i, line);
            return copy_exactly<Width>(src, dst, i, n);
        }
    }
    for (; i + block <= n; i += block) copy_block<Width, store_policy::plain>(src, dst, i, block);
    for (; i + vector <= n; i += vector) copy_vector<Width, store_policy::plain>(src, dst, i);
    copy_tail<Width>(src, dst, i, n);
}

#else // HWY_SCALAR: one element at a time in plain C++, no vector types

template <std::size_t Width, column_class C0, column_class C1>
struct read_ahead {
    read_ahead(const select_tile&, std::int64_t) {}
};

template <std::size_t Width, store_policy Store, class S0, class S1>
void select_row(const std::byte* cond, S0 src_0, S1 src_1, std::byte* dst, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        std::byte sides[2][Width];
        std::memcpy(sides[0], src_1.element(i), Width);
        std::memcpy(sides[1], src_0.element(i), Width);
        std::memcpy(dst + i * Width, sides[element_is_true(cond + i) ? 1 : 0], Width);
    }
}

template <std::size_t Width, store_policy Store, class S, class Ahead>
void move_row(S src, std::byte* dst, std::size_t n, const Ahead&) {
    if (src.row == dst) return;
    for (std::size_t i = 0; i < n; ++i) std::memcpy(dst + i * Width, src.element(i), Width);
}

#endif

template <std::size_t Width, column_class C, column_class C0, column_class C1, store_policy Store>
HWY_ATTR void select_tile_kernel(const select_tile& tile) {
    const auto n = static_cast<std::size_t>(tile.columns);
    for (std::int64_t r = 0; r < tile.rows; ++r) {
        const std::byte* cond = tile.cond + r * tile.cond_row_bytes;
        const select_source<Width, C0> src_0{tile.src_0 + r * tile.src_0_row_bytes};
        const select_source<Width, C1> src_1{tile.src_1 + r * tile.src_1_row_bytes};
        std::byte* dst = tile.dst + r * tile.dst_row_bytes;
        if constexpr (C == column_class::unit) {
            select_row<Width, Store>(cond, src_0, src_1, dst, n);
        } else {
            const read_ahead<Width, C0, C1> ahead(tile, r);
            if (element_is_true(cond))
                move_row<Width, Store>(src_0, dst, n, ahead);
            else
                move_row<Width, Store>(src_1, dst, n, ahead);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_SELECT_SELECT_INL
