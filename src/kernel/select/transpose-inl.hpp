// The transpose kernel for one Highway target.
//
// Transposes N x N elements in registers by log2(N) rounds of interleaving. N is at most 16 /
// width.

#if defined(MASKWISE_KERNEL_SELECT_TRANSPOSE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_SELECT_TRANSPOSE_INL
#undef MASKWISE_KERNEL_SELECT_TRANSPOSE_INL
#else
#define MASKWISE_KERNEL_SELECT_TRANSPOSE_INL
#endif

#include "kernel/select/pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

inline std::int64_t div_up(std::int64_t count, std::int64_t divisor) {
    return (count + divisor - 1) / divisor;
}

// Transposes the items from `first`, one element at a time.
template <std::size_t Width>
HWY_ATTR HWY_INLINE void transpose_elements(const std::byte* src, std::byte* dst,
                                            const pack_tile& tile, std::int64_t first,
                                            prefetcher& ahead) {
    const std::int32_t* const offsets = tile.layout.offsets.data();
    const std::int32_t* const places = tile.layout.group_places.data();
    const auto [items, groups] = std::pair(tile.layout.items, tile.layout.groups);
    for (std::int64_t g = 0; g < groups; ++g, ahead.step())
        for (std::int64_t i = first; i < items; ++i)
            std::memcpy(dst + places[g] + i * std::int64_t{Width},
                        src + g * std::int64_t{Width} + offsets[i], Width);
}

#if HWY_TARGET != HWY_SCALAR

// Loads N elements of each of `Blocks` items, N items apart, as one vector.
template <std::size_t Width, std::size_t N, std::size_t Blocks>
HWY_ATTR HWY_INLINE auto load_items(const std::byte* src, const std::int32_t* offsets) {
    using lane = lane_of<Width>;
    const hn::FixedTag<lane, N * Blocks> d;
    if constexpr (Blocks == 1)
        return hn::LoadU(d, reinterpret_cast<const lane*>(src + *offsets));
    else
        return hn::Combine(d, load_items<Width, N, Blocks / 2>(src, offsets + N * Blocks / 2),
                           load_items<Width, N, Blocks / 2>(src, offsets));
}

// Hides the pointer from the compiler, which would keep a pointer to each element and run out of
// registers.
HWY_ATTR HWY_INLINE const std::int32_t* hidden_pointer(const std::int32_t* numbers) {
    __asm__("" : "+r"(numbers));
    return numbers;
}

// Transposes by log2(N) rounds that interleave row k with row k + N / 2.
template <std::size_t N, class D>
HWY_ATTR HWY_INLINE void interleave_rows(D d, hn::VFromD<D> (&v)[N]) {
    for (std::size_t round = 1; round < N; round *= 2) {
        hn::VFromD<D> next[N];
        for (std::size_t k = 0; k < N / 2; ++k) {
            next[2 * k] = hn::InterleaveLower(d, v[k], v[k + N / 2]);
            next[2 * k + 1] = hn::InterleaveUpper(d, v[k], v[k + N / 2]);
        }
        for (std::size_t k = 0; k < N; ++k) v[k] = next[k];
    }
}

// Transposes Blocks * N items of N groups. N is a power of two.
template <std::size_t Width, std::size_t N, std::size_t Blocks>
struct square_block {
    static constexpr std::size_t items = N * Blocks, groups = N;

    // Writes only the first `written` groups.
    static HWY_ATTR HWY_INLINE void move(const std::byte* src, const std::int32_t* offsets,
                                         std::byte* dst, const std::int32_t* places,
                                         std::size_t written = groups) {
        using lane = lane_of<Width>;
        const hn::FixedTag<lane, items> d;
        hn::VFromD<decltype(d)> v[N];
        for (std::size_t k = 0; k < N; ++k) v[k] = load_items<Width, N, Blocks>(src, offsets + k);
        interleave_rows(d, v);
        for (std::size_t k = 0; k < N; ++k)
            if (k < written) hn::StoreU(v[k], d, reinterpret_cast<lane*>(dst + places[k]));
    }
};

// Transposes N items of 2 * N groups. A register holds one item before the interleaving, and two
// groups of N elements after.
template <std::size_t Width, std::size_t N>
struct wide_block {
    static constexpr std::size_t items = N, groups = 2 * N;

    static HWY_ATTR HWY_INLINE void move(const std::byte* src, const std::int32_t* offsets,
                                         std::byte* dst, const std::int32_t* places) {
        using lane = lane_of<Width>;
        const hn::FixedTag<lane, groups> d;
        const hn::FixedTag<lane, items> half;
        hn::VFromD<decltype(d)> v[N];
        for (std::size_t k = 0; k < N; ++k)
            v[k] = hn::LoadU(d, reinterpret_cast<const lane*>(src + offsets[k]));
        interleave_rows(d, v);
        for (std::size_t k = 0; k < N; ++k) {
            const auto group = [&](std::size_t g) {
                return reinterpret_cast<lane*>(dst + places[g]);
            };
            hn::StoreU(hn::LowerHalf(half, v[k]), half, group(2 * k));
            hn::StoreU(hn::UpperHalf(half, v[k]), half, group(2 * k + 1));
        }
    }
};

// The inner loop walks along the groups, where the source is contiguous. Each cache line is used
// before other lines evict it, even if items are a power of two apart. The last block overlaps the
// block before it.
template <std::size_t Width, class Block>
HWY_ATTR HWY_INLINE void transpose_blocks(const std::byte* src, std::byte* dst,
                                          const pack_tile& tile, const std::int32_t* offsets,
                                          prefetcher& ahead) {
    constexpr std::int64_t step = Block::items, step_groups = Block::groups;
    const std::int32_t* const places = tile.layout.group_places.data();
    const auto [items, groups] = std::pair(tile.layout.items, tile.layout.groups);
    for (std::int64_t next_i = 0; next_i < items; next_i += step) {
        const std::int64_t i = HWY_MAX(0, HWY_MIN(next_i, items - step));
        for (std::int64_t next_g = 0; next_g < groups; next_g += step_groups) {
            const std::int64_t g = HWY_MIN(next_g, groups - step_groups);
            ahead.step();
            Block::move(src + g * std::int64_t{Width}, hidden_pointer(offsets + i),
                        dst + i * std::int64_t{Width}, hidden_pointer(places + g));
        }
    }
}

// Transposes pixels (items whose elements are adjacent) to planes, if a register holds more than a
// pixel. Each load begins at a pixel and fills a register. The loop of blocks stops before a load
// would read past the last pixel.
template <std::size_t Width, std::size_t Blocks>
HWY_ATTR HWY_INLINE void transpose_pixels(const std::byte* src, std::byte* dst,
                                          const pack_tile& tile, prefetcher& ahead) {
    using block = square_block<Width, 16 / Width, Blocks>;
    constexpr std::int64_t step = block::items, width = Width;
    const std::int32_t* const offsets = tile.layout.offsets.data();
    const std::int32_t* const places = tile.layout.group_places.data();
    const auto [items, groups] = std::pair(tile.layout.items, tile.layout.groups);
    const std::int64_t whole = items - div_up(16, groups * width) + 1;
    std::int64_t i = 0;
    for (; i + step <= whole; i += step) {
        ahead.step();
        block::move(src, hidden_pointer(offsets + i), dst + i * width, hidden_pointer(places),
                    static_cast<std::size_t>(groups));
    }
    transpose_elements<Width>(src, dst, tile, i, ahead);
}

// Transposes planes to pixels: two to four items are adjacent in the buffer. The last N groups may
// overlap earlier groups.
template <std::size_t Width>
HWY_ATTR HWY_INLINE void interleave(const std::byte* src, std::byte* dst, const pack_tile& tile,
                                    prefetcher& ahead) {
    using lane = lane_of<Width>;
    constexpr std::int64_t N = 16 / Width, width = Width;
    const hn::FixedTag<lane, 16 / Width> d;
    const std::int32_t* const offsets = tile.layout.offsets.data();
    const auto load = [&](std::int64_t i, std::int64_t g) HWY_ATTR {
        return hn::LoadU(d, reinterpret_cast<const lane*>(src + offsets[i] + g * width));
    };
    for (std::int64_t next_g = 0; next_g < tile.layout.groups; next_g += N) {
        const std::int64_t g = HWY_MIN(next_g, tile.layout.groups - N);
        ahead.step();
        auto* out = reinterpret_cast<lane*>(dst + g * tile.layout.buffer_group_bytes);
        if (tile.layout.items == 2)
            hn::StoreInterleaved2(load(0, g), load(1, g), d, out);
        else if (tile.layout.items == 3)
            hn::StoreInterleaved3(load(0, g), load(1, g), load(2, g), d, out);
        else
            hn::StoreInterleaved4(load(0, g), load(1, g), load(2, g), load(3, g), d, out);
    }
}

// Transposes pixels to planes: two to four groups are adjacent in the source.
template <std::size_t Width>
HWY_ATTR HWY_INLINE void deinterleave(const std::byte* src, std::byte* dst, const pack_tile& tile,
                                      prefetcher& ahead) {
    using lane = lane_of<Width>;
    constexpr std::int64_t N = 16 / Width, width = Width;
    const hn::FixedTag<lane, 16 / Width> d;
    const std::int32_t* const offsets = tile.layout.offsets.data();
    const std::int32_t* const places = tile.layout.group_places.data();
    for (std::int64_t next_i = 0; next_i < tile.layout.items; next_i += N) {
        const std::int64_t i = HWY_MIN(next_i, tile.layout.items - N);
        ahead.step();
        const auto* in = reinterpret_cast<const lane*>(src + offsets[i]);
        hn::VFromD<decltype(d)> v[4];
        if (tile.layout.groups == 2)
            hn::LoadInterleaved2(d, in, v[0], v[1]);
        else if (tile.layout.groups == 3)
            hn::LoadInterleaved3(d, in, v[0], v[1], v[2]);
        else
            hn::LoadInterleaved4(d, in, v[0], v[1], v[2], v[3]);
        for (std::int64_t g = 0; g < tile.layout.groups; ++g)
            hn::StoreU(v[g], d, reinterpret_cast<lane*>(dst + places[g] + i * width));
    }
}

#endif

// `steps`: calls of ahead.step() per block.
template <class Move>
HWY_ATTR HWY_INLINE void for_each_block(const pack_tile& tile, std::int64_t steps,
                                        const Move& move) {
    prefetcher ahead(tile, tile.layout.blocks * steps);
    const std::int32_t* const offsets = tile.layout.block_offsets.data();
    const std::int32_t* const places = tile.layout.block_places.data();
    for (std::int64_t b = 0; b < tile.layout.blocks; ++b)
        move(tile.strided + offsets[b], tile.buffer + places[b], ahead);
}

template <auto Move>
HWY_ATTR HWY_INLINE void move_blocks(const pack_tile& tile, std::int64_t steps) {
    for_each_block(tile, steps,
                   [&](const std::byte* src, std::byte* dst, prefetcher& ahead)
                       HWY_ATTR { Move(src, dst, tile, ahead); });
}

template <std::size_t Width>
HWY_ATTR HWY_INLINE void transpose_all(const std::byte* src, std::byte* dst, const pack_tile& tile,
                                       prefetcher& ahead) {
    transpose_elements<Width>(src, dst, tile, 0, ahead);
}

template <std::size_t Width>
HWY_ATTR HWY_INLINE void transpose_singly(const pack_tile& tile) {
    move_blocks<transpose_all<Width>>(tile, tile.layout.groups);
}

#if HWY_TARGET != HWY_SCALAR

template <std::size_t Width>
bool is_dense(const pack_layout& layout) {
    return layout.buffer_group_bytes == layout.items * std::int64_t{Width};
}

// If groups are contiguous in the buffer, the tile may have fewer items than the block, but more
// than half: the next group overwrites the excess of a group, and the buffer's slack takes the
// excess of the last group.
template <std::size_t Width, class Block>
bool fits(const pack_layout& layout) {
    constexpr std::int64_t items = Block::items, groups = Block::groups;
    const std::int64_t min_items = is_dense<Width>(layout) ? items / 2 + 1 : items;
    return layout.items >= min_items && layout.groups >= groups && items <= layout.max_items;
}

// If the tile has fewer items than a block, the last item is read repeatedly.
template <std::size_t Width, class Block>
HWY_ATTR HWY_INLINE void transpose_in(const pack_tile& tile) {
    const pack_layout& layout = tile.layout;
    const auto items = static_cast<std::size_t>(layout.items);
    const std::int32_t* offsets = layout.offsets.data();
    std::int32_t padded[Block::items];
    if (items < Block::items) {
        for (std::size_t i = 0; i < Block::items; ++i) padded[i] = offsets[HWY_MIN(i, items - 1)];
        offsets = padded;
    }
    const std::int64_t steps = div_up(layout.groups, std::int64_t{Block::groups}) *
                               div_up(layout.items, std::int64_t{Block::items});
    for_each_block(tile, steps,
                   [&](const std::byte* src, std::byte* dst, prefetcher& ahead) HWY_ATTR {
                       transpose_blocks<Width, Block>(src, dst, tile, offsets, ahead);
                   });
}

// Uses the largest blocks that fit.
template <std::size_t Width, std::size_t N, std::size_t Blocks>
HWY_ATTR HWY_INLINE void transpose_by(const pack_tile& tile) {
    if constexpr (N < 2) {
        transpose_singly<Width>(tile);
    } else {
        using square = square_block<Width, N, Blocks>;
        using wide = wide_block<Width, N>;
        if constexpr (N * Width == 8)
            if (fits<Width, wide>(tile.layout)) return transpose_in<Width, wide>(tile);
        if (fits<Width, square>(tile.layout)) return transpose_in<Width, square>(tile);
        transpose_by<Width, Blocks == 1 ? N / 2 : N, 1>(tile);
    }
}

#endif

template <std::size_t Width>
HWY_ATTR void transpose_kernel(const pack_tile& tile) {
#if HWY_TARGET != HWY_SCALAR
    constexpr std::int64_t N = 16 / Width, width = Width;
    // At most two: with four, rows a power of two apart would collide in L1, and others would gain
    // nothing.
    constexpr std::size_t blocks = HWY_MIN(HWY_MAX_BYTES / 16, 2);
    if constexpr (N > 1) {
        if (tile.layout.items >= 2 && tile.layout.items <= 4 && tile.layout.groups >= N &&
            is_dense<Width>(tile.layout))
            return move_blocks<interleave<Width>>(tile, div_up(tile.layout.groups, N));
        const bool pixels = tile.layout.items > 1 && tile.layout.groups > 1 &&
                            tile.layout.even_items &&
                            tile.layout.offsets[1] == tile.layout.groups * width;
        if (pixels && tile.layout.groups <= 4 && tile.layout.items >= HWY_MAX(N, 3))
            return move_blocks<deinterleave<Width>>(tile, div_up(tile.layout.items, N));
        if (pixels && tile.layout.groups < N) {
            // For bytes, 16 wider registers would spill.
            constexpr std::size_t vectors = Width == 1 ? 1 : blocks;
            return move_blocks<transpose_pixels<Width, vectors>>(
                tile, div_up(tile.layout.items, N * std::int64_t{vectors}));
        }
    }
    transpose_by<Width, N, blocks>(tile);
#else
    transpose_singly<Width>(tile);
#endif
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_SELECT_TRANSPOSE_INL
