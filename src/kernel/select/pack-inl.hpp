// The gather, scatter and splat kernels, compiled for one Highway target.
//
// The kernels load and store at precomputed offsets. Gather and scatter move items of 1, 2, 4, 8 or
// 16 bytes by one load and one store. Other sizes take several moves, which may overlap. If windows
// of 16 bytes hold several items each, gather takes two loads and a shuffle per window.

#if defined(MASKWISE_KERNEL_SELECT_PACK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_SELECT_PACK_INL
#undef MASKWISE_KERNEL_SELECT_PACK_INL
#else
#define MASKWISE_KERNEL_SELECT_PACK_INL
#endif

#include "kernel/select/contract.hpp"
#include "kernel/target-inl.hpp"

#include <utility>

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// Copies exactly `bytes` bytes in moves of Unit bytes; the last two moves may overlap. Requires
// Unit <= bytes.
template <std::size_t Unit>
HWY_ATTR HWY_INLINE void copy_run(std::byte* dst, const std::byte* src, std::size_t bytes) {
    for (; bytes > 2 * Unit; bytes -= Unit, dst += Unit, src += Unit) std::memcpy(dst, src, Unit);
    std::byte first[Unit], last[Unit];
    std::memcpy(first, src, Unit);
    std::memcpy(last, src + bytes - Unit, Unit);
    std::memcpy(dst, first, Unit);
    std::memcpy(dst + bytes - Unit, last, Unit);
}

// With moves of 64 bytes, packing takes 1.2 to 1.4 times as long on Zen 4, because most moves cross
// a cache line.
constexpr std::size_t longest_move = HWY_MIN(32, HWY_MAX(16, HWY_MAX_BYTES));

template <std::size_t Unit, bool Exact>
HWY_ATTR HWY_INLINE void copy_item(std::byte* dst, const std::byte* src, std::size_t bytes) {
    if constexpr (Exact)
        std::memcpy(dst, src, Unit);
    else if (Unit == 16 && bytes >= longest_move)
        copy_run<longest_move>(dst, src, bytes);
    else
        copy_run<Unit>(dst, src, bytes);
}

// Prefetches the tile's `ahead` lines, spread evenly over `steps` steps. Targets L2, because lines
// a power of two apart evict each other in L1.
class prefetcher {
public:
    HWY_ATTR HWY_INLINE prefetcher(const pack_tile& tile, std::int64_t steps)
        : base_(tile.ahead.base), next_(tile.ahead.offsets.data()),
          end_(next_ + tile.ahead.offsets.size()), each_((end_ - next_ + steps - 1) / steps) {}

    HWY_ATTR HWY_INLINE void step() {
        const std::int32_t* const last = end_ - next_ > each_ ? next_ + each_ : end_;
        for (; next_ < last; ++next_) __builtin_prefetch(base_ + *next_, 0, 2);
    }

private:
    const std::byte* base_;
    const std::int32_t* next_;
    const std::int32_t* end_;
    std::int64_t each_;
};

template <class Move>
HWY_ATTR HWY_INLINE void for_each_group(const pack_tile& tile, const Move& move) {
    std::byte* buffer = tile.buffer;
    // Local copies, because the compiler assumes that a store by `move` may change the layout.
    const auto [blocks, groups] = std::pair(tile.layout.blocks, tile.layout.groups);
    const std::int64_t group_bytes = tile.layout.group_bytes;
    const std::int64_t buffer_group_bytes = tile.layout.buffer_group_bytes;
    const std::int32_t* const block_offsets = tile.layout.block_offsets.data();
    prefetcher ahead(tile, blocks * groups);
    for (std::int64_t b = 0; b < blocks; ++b) {
        std::byte* strided = tile.strided + block_offsets[b];
        for (std::int64_t g = 0; g < groups; ++g) {
            ahead.step();
            move(strided, buffer);
            strided += group_bytes;
            buffer += buffer_group_bytes;
        }
    }
}

template <std::size_t Unit, bool Exact, bool Scatter>
HWY_ATTR HWY_INLINE void move_items(const pack_tile& tile) {
    const auto bytes = Exact ? Unit : static_cast<std::size_t>(tile.layout.item_bytes);
    for_each_group(tile, [&](std::byte* strided, std::byte* buffer) HWY_ATTR {
        const std::int32_t* const offsets = tile.layout.offsets.data();
        const std::int64_t items = tile.layout.items;
#pragma GCC unroll 8
        for (std::int64_t i = 0; i < items; ++i, buffer += bytes) {
            std::byte* item = strided + offsets[i];
            if constexpr (Scatter)
                copy_item<Unit, Exact>(item, buffer, bytes);
            else
                copy_item<Unit, Exact>(buffer, item, bytes);
        }
    });
}

#if HWY_TARGET != HWY_SCALAR

template <std::int64_t Windows>
HWY_ATTR void gather_windows(const pack_tile& tile) {
    if constexpr (Windows < max_windows)
        if (tile.layout.windows.count > Windows) return gather_windows<Windows + 1>(tile);
    const hn::FixedTag<std::uint8_t, window_bytes> d;
    for_each_group(tile, [&](const std::byte* strided, std::byte* buffer) HWY_ATTR {
        const std::int32_t* offsets = tile.layout.windows.offsets.data();
        const std::uint8_t* shuffles = tile.layout.windows.shuffles.data();
        const auto picked = [&](std::int64_t w) HWY_ATTR {
            return hn::TableLookupBytesOr0(hn::LoadU(d, as_bytes(strided + offsets[w])),
                                           hn::LoadU(d, shuffles + w * window_bytes));
        };
        const std::int64_t last = tile.layout.buffer_group_bytes - window_bytes;
        for (std::int64_t i = 0; i < last + window_bytes; i += window_bytes) {
            auto bytes = picked(0);
#pragma GCC unroll 8
            for (std::int64_t w = 1; w < Windows; ++w) bytes = hn::Or(bytes, picked(w));
            hn::StoreU(bytes, d, reinterpret_cast<std::uint8_t*>(buffer + HWY_MIN(i, last)));
            offsets += Windows;
            shuffles += Windows * window_bytes;
        }
    });
}

#endif

template <std::size_t Unit>
HWY_ATTR void gather_kernel(const pack_tile& tile) {
#if HWY_TARGET != HWY_SCALAR
    if (tile.may_use_windows && tile.layout.windows.count > 0) return gather_windows<1>(tile);
#endif
    if (tile.layout.item_bytes == static_cast<std::int64_t>(Unit))
        move_items<Unit, true, false>(tile);
    else
        move_items<Unit, false, false>(tile);
}

template <std::size_t Unit>
HWY_ATTR void scatter_kernel(const pack_tile& tile) {
    if (tile.layout.item_bytes == static_cast<std::int64_t>(Unit))
        move_items<Unit, true, true>(tile);
    else
        move_items<Unit, false, true>(tile);
}

// Fills `bytes` bytes with the element at `src`. Writes up to Step - 1 bytes more.
template <std::size_t Width, std::size_t Step>
HWY_ATTR HWY_INLINE void splat_item(std::byte* dst, const std::byte* src, std::size_t bytes) {
    std::byte pattern[Step];
    for (std::size_t i = 0; i < Step; i += Width) std::memcpy(pattern + i, src, Width);
    for (std::size_t i = 0; i < bytes; i += Step) std::memcpy(dst + i, pattern, Step);
}

// Each item overwrites the excess of the item before it. Short items use short stores to overlap
// less.
template <std::size_t Width>
HWY_ATTR void splat_kernel(const pack_tile& tile) {
    constexpr std::size_t longest = HWY_MAX(16, HWY_MAX_BYTES);
    static_assert(longest <= pack_slack_bytes);
    const auto bytes = static_cast<std::size_t>(tile.layout.item_bytes);
    for_each_group(tile, [&](const std::byte* strided, std::byte* buffer) HWY_ATTR {
        const std::int32_t* const offsets = tile.layout.offsets.data();
        const std::int64_t items = tile.layout.items;
        for (std::int64_t i = 0; i < items; ++i, buffer += bytes) {
            if (bytes <= 16)
                splat_item<Width, 16>(buffer, strided + offsets[i], bytes);
            else
                splat_item<Width, longest>(buffer, strided + offsets[i], bytes);
        }
    });
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_SELECT_PACK_INL
