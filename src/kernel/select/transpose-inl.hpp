// The kernel that transposes, for one Highway target.
//
// It moves blocks of 16 x 16 bytes through registers: log2(16 / width) rounds of interleaving, two
// shuffles a cycle.

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

inline std::int64_t steps_of(std::int64_t count, std::int64_t each) {
    return (count + each - 1) / each;
}

// The items from `first` on.
template <std::size_t Width>
HWY_ATTR HWY_INLINE void transpose_elements(const std::byte* from, std::byte* to,
                                            const pack_tile& tile, std::int64_t first,
                                            ask_ahead& ahead) {
    const std::int32_t* const offsets = tile.layout.offsets.data();
    const std::int32_t* const places = tile.layout.group_places.data();
    const auto [items, groups] = std::pair(tile.layout.items, tile.layout.groups);
    for (std::int64_t g = 0; g < groups; ++g, ahead.step())
        for (std::int64_t i = first; i < items; ++i)
            std::memcpy(to + places[g] + i * std::int64_t{Width},
                        from + g * std::int64_t{Width} + offsets[i], Width);
}

#if HWY_TARGET != HWY_SCALAR

// Blocks vectors of 16 bytes, each from the item N further on than the one before it, as one
// vector.
template <std::size_t Width, std::size_t N, std::size_t Blocks>
HWY_ATTR HWY_INLINE auto load_items(const std::byte* from, const std::int32_t* offsets) {
    using lane = lane_of<Width>;
    const hn::FixedTag<lane, N * Blocks> d;
    if constexpr (Blocks == 1)
        return hn::LoadU(d, reinterpret_cast<const lane*>(from + *offsets));
    else
        return hn::Combine(d, load_items<Width, N, Blocks / 2>(from, offsets + N * Blocks / 2),
                           load_items<Width, N, Blocks / 2>(from, offsets));
}

// One pointer to the numbers of a block. The compiler would keep one for each of them, more than it
// has registers, and move them to and from vectors.
HWY_ATTR HWY_INLINE const std::int32_t* as_one(const std::int32_t* numbers) {
    __asm__("" : "+r"(numbers));
    return numbers;
}

// Rounds of interleaving row k with row k + N / 2: after log2(N) of them rows are columns.
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

// Blocks * N items, each N groups long, N a power of two, become N groups of as many items.
template <std::size_t Width, std::size_t N, std::size_t Blocks>
struct square_block {
    static constexpr std::size_t items = N * Blocks, groups = N;

    // `wanted` of the groups are written.
    static HWY_ATTR HWY_INLINE void move(const std::byte* from, const std::int32_t* offsets,
                                         std::byte* to, const std::int32_t* places,
                                         std::size_t wanted = groups) {
        using lane = lane_of<Width>;
        const hn::FixedTag<lane, items> d;
        hn::VFromD<decltype(d)> v[N];
        for (std::size_t k = 0; k < N; ++k) v[k] = load_items<Width, N, Blocks>(from, offsets + k);
        interleave_rows(d, v);
        for (std::size_t k = 0; k < N; ++k)
            if (k < wanted) hn::StoreU(v[k], d, reinterpret_cast<lane*>(to + places[k]));
    }
};

// N items that fill half a register, with twice as many groups: whole registers all the way.
template <std::size_t Width, std::size_t N>
struct wide_block {
    static constexpr std::size_t items = N, groups = 2 * N;

    static HWY_ATTR HWY_INLINE void move(const std::byte* from, const std::int32_t* offsets,
                                         std::byte* to, const std::int32_t* places) {
        using lane = lane_of<Width>;
        const hn::FixedTag<lane, groups> d;
        const hn::FixedTag<lane, items> half;
        hn::VFromD<decltype(d)> v[N];
        for (std::size_t k = 0; k < N; ++k)
            v[k] = hn::LoadU(d, reinterpret_cast<const lane*>(from + offsets[k]));
        interleave_rows(d, v);
        for (std::size_t k = 0; k < N; ++k) {
            const auto at = [&](std::size_t g) { return reinterpret_cast<lane*>(to + places[g]); };
            hn::StoreU(hn::LowerHalf(half, v[k]), half, at(2 * k));
            hn::StoreU(hn::UpperHalf(half, v[k]), half, at(2 * k + 1));
        }
    }
};

// Along the groups first: there the source is contiguous, and each of its cache lines is used up
// before the next ones push it out, even where the items are a power of two apart. What does not
// fill a block is done by one more block that overlaps the last one.
template <std::size_t Width, class Block>
HWY_ATTR HWY_INLINE void transpose_blocks(const std::byte* from, std::byte* to,
                                          const pack_tile& tile, const std::int32_t* offsets,
                                          ask_ahead& ahead) {
    constexpr std::int64_t step = Block::items, step_groups = Block::groups;
    const std::int32_t* const places = tile.layout.group_places.data();
    const auto [items, groups] = std::pair(tile.layout.items, tile.layout.groups);
    for (std::int64_t next_i = 0; next_i < items; next_i += step) {
        const std::int64_t i = HWY_MAX(0, HWY_MIN(next_i, items - step));
        for (std::int64_t next_g = 0; next_g < groups; next_g += step_groups) {
            const std::int64_t g = HWY_MIN(next_g, groups - step_groups);
            ahead.step();
            Block::move(from + g * std::int64_t{Width}, as_one(offsets + i),
                        to + i * std::int64_t{Width}, as_one(places + g));
        }
    }
}

// Pixels of fewer groups than a register holds become planes: registers are read from where a pixel
// begins, as long as they end before the last pixel does.
template <std::size_t Width, std::size_t Blocks>
HWY_ATTR HWY_INLINE void transpose_pixels(const std::byte* from, std::byte* to,
                                          const pack_tile& tile, ask_ahead& ahead) {
    using block = square_block<Width, 16 / Width, Blocks>;
    constexpr std::int64_t step = block::items, width = Width;
    const std::int32_t* const offsets = tile.layout.offsets.data();
    const std::int32_t* const places = tile.layout.group_places.data();
    const auto [items, groups] = std::pair(tile.layout.items, tile.layout.groups);
    const std::int64_t whole = items - steps_of(16, groups * width) + 1;
    std::int64_t i = 0;
    for (; i + step <= whole; i += step) {
        ahead.step();
        block::move(from, as_one(offsets + i), to + i * width, as_one(places),
                    static_cast<std::size_t>(groups));
    }
    transpose_elements<Width>(from, to, tile, i, ahead);
}

// Two to four items side by side in the buffer: planes become pixels. N groups at a time, the last
// ones again where N does not divide them.
template <std::size_t Width>
HWY_ATTR HWY_INLINE void interleave(const std::byte* from, std::byte* to, const pack_tile& tile,
                                    ask_ahead& ahead) {
    using lane = lane_of<Width>;
    constexpr std::int64_t N = 16 / Width, width = Width;
    const hn::FixedTag<lane, 16 / Width> d;
    const std::int32_t* const offsets = tile.layout.offsets.data();
    const auto load = [&](std::int64_t i, std::int64_t g) HWY_ATTR {
        return hn::LoadU(d, reinterpret_cast<const lane*>(from + offsets[i] + g * width));
    };
    for (std::int64_t next_g = 0; next_g < tile.layout.groups; next_g += N) {
        const std::int64_t g = HWY_MIN(next_g, tile.layout.groups - N);
        ahead.step();
        auto* out = reinterpret_cast<lane*>(to + g * tile.layout.buffer_group_bytes);
        if (tile.layout.items == 2)
            hn::StoreInterleaved2(load(0, g), load(1, g), d, out);
        else if (tile.layout.items == 3)
            hn::StoreInterleaved3(load(0, g), load(1, g), load(2, g), d, out);
        else
            hn::StoreInterleaved4(load(0, g), load(1, g), load(2, g), load(3, g), d, out);
    }
}

// Two to four groups side by side in the source: pixels become planes.
template <std::size_t Width>
HWY_ATTR HWY_INLINE void deinterleave(const std::byte* from, std::byte* to, const pack_tile& tile,
                                      ask_ahead& ahead) {
    using lane = lane_of<Width>;
    constexpr std::int64_t N = 16 / Width, width = Width;
    const hn::FixedTag<lane, 16 / Width> d;
    const std::int32_t* const offsets = tile.layout.offsets.data();
    const std::int32_t* const places = tile.layout.group_places.data();
    for (std::int64_t next_i = 0; next_i < tile.layout.items; next_i += N) {
        const std::int64_t i = HWY_MIN(next_i, tile.layout.items - N);
        ahead.step();
        const auto* in = reinterpret_cast<const lane*>(from + offsets[i]);
        hn::VFromD<decltype(d)> v[4];
        if (tile.layout.groups == 2)
            hn::LoadInterleaved2(d, in, v[0], v[1]);
        else if (tile.layout.groups == 3)
            hn::LoadInterleaved3(d, in, v[0], v[1], v[2]);
        else
            hn::LoadInterleaved4(d, in, v[0], v[1], v[2], v[3]);
        for (std::int64_t g = 0; g < tile.layout.groups; ++g)
            hn::StoreU(v[g], d, reinterpret_cast<lane*>(to + places[g] + i * width));
    }
}

#endif

// `steps` of a block: each asks for lines once.
template <class Move>
HWY_ATTR HWY_INLINE void for_each_block(const pack_tile& tile, std::int64_t steps,
                                        const Move& move) {
    ask_ahead ahead(tile, tile.layout.blocks * steps);
    const std::int32_t* const offsets = tile.layout.block_offsets.data();
    const std::int32_t* const places = tile.layout.block_places.data();
    for (std::int64_t b = 0; b < tile.layout.blocks; ++b)
        move(tile.strided + offsets[b], tile.buffer + places[b], ahead);
}

template <auto Move>
HWY_ATTR HWY_INLINE void move_blocks(const pack_tile& tile, std::int64_t steps) {
    for_each_block(tile, steps,
                   [&](const std::byte* from, std::byte* to, ask_ahead& ahead)
                       HWY_ATTR { Move(from, to, tile, ahead); });
}

template <std::size_t Width>
HWY_ATTR HWY_INLINE void transpose_all(const std::byte* from, std::byte* to, const pack_tile& tile,
                                       ask_ahead& ahead) {
    transpose_elements<Width>(from, to, tile, 0, ahead);
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

// Where groups lie one behind the other in the buffer more than half of a block's items will do:
// what a group writes too far the next one, or the slack, takes.
template <std::size_t Width, class Block>
bool fits(const pack_layout& layout) {
    constexpr std::int64_t items = Block::items, groups = Block::groups;
    const std::int64_t least = is_dense<Width>(layout) ? items / 2 + 1 : items;
    return layout.items >= least && layout.groups >= groups && items <= layout.most_items;
}

// In place of items that a block has and the tile lacks the last one is read.
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
    const std::int64_t steps = steps_of(layout.groups, std::int64_t{Block::groups}) *
                               steps_of(layout.items, std::int64_t{Block::items});
    for_each_block(tile, steps,
                   [&](const std::byte* from, std::byte* to, ask_ahead& ahead) HWY_ATTR {
                       transpose_blocks<Width, Block>(from, to, tile, offsets, ahead);
                   });
}

// By the largest blocks that fit.
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
    // Not four: rows a power of two apart then meet in L1, and are no faster where they do not.
    constexpr std::size_t blocks = HWY_MIN(HWY_MAX_BYTES / 16, 2);
    if constexpr (N > 1) {
        if (tile.layout.items >= 2 && tile.layout.items <= 4 && tile.layout.groups >= N &&
            is_dense<Width>(tile.layout))
            return move_blocks<interleave<Width>>(tile, steps_of(tile.layout.groups, N));
        const bool pixels = tile.layout.items > 1 && tile.layout.groups > 1 &&
                            tile.layout.even_items &&
                            tile.layout.offsets[1] == tile.layout.groups * width;
        if (pixels && tile.layout.groups <= 4 && tile.layout.items >= HWY_MAX(N, 3))
            return move_blocks<deinterleave<Width>>(tile, steps_of(tile.layout.items, N));
        if (pixels && tile.layout.groups < N) {
            // Wider registers than 16 of 16 bytes would be kept in memory.
            constexpr std::size_t at_once = Width == 1 ? 1 : blocks;
            return move_blocks<transpose_pixels<Width, at_once>>(
                tile, steps_of(tile.layout.items, N * std::int64_t{at_once}));
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
