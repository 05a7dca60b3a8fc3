// The step kernel for one Highway target: packs evenly spaced elements.
//
// Distances -4 to -1 and 2 to 4 take vector loads and a few shuffles per vector. Other distances
// take a load and a store per element.

#if defined(MASKWISE_KERNEL_SELECT_STEP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_SELECT_STEP_INL
#undef MASKWISE_KERNEL_SELECT_STEP_INL
#else
#define MASKWISE_KERNEL_SELECT_STEP_INL
#endif

#include "kernel/select/pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// Copies four elements at a time, to compute only one address for all four.
template <std::size_t Width>
HWY_ATTR HWY_INLINE void step_elements(const std::byte* src, std::byte* dst, std::int64_t count,
                                       std::int64_t step) {
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4, src += 4 * step, dst += 4 * Width) {
        std::memcpy(dst, src, Width);
        std::memcpy(dst + Width, src + step, Width);
        std::memcpy(dst + 2 * Width, src + 2 * step, Width);
        std::memcpy(dst + 3 * Width, src + 3 * step, Width);
    }
    for (; i < count; ++i, src += step, dst += Width) std::memcpy(dst, src, Width);
}

#if HWY_TARGET != HWY_SCALAR

template <class D>
HWY_ATTR HWY_INLINE hn::VFromD<D> reversed(D d, hn::VFromD<D> v) {
    if constexpr (sizeof(hn::TFromD<D>) == 1) {
        const hn::Repartition<std::uint16_t, D> pairs;
        const auto swapped = hn::Reverse(pairs, hn::BitCast(pairs, v));
        return hn::BitCast(d, hn::Or(hn::ShiftLeft<8>(swapped), hn::ShiftRight<8>(swapped)));
    } else {
        return hn::Reverse(d, v);
    }
}

// Returns every second element of two vectors, starting at the first or at the second.
template <bool FromFirst, class D>
HWY_ATTR HWY_INLINE hn::VFromD<D> every_second(D d, hn::VFromD<D> lower, hn::VFromD<D> upper) {
    return FromFirst ? hn::ConcatEven(d, upper, lower) : hn::ConcatOdd(d, upper, lower);
}

// Packs Distance vectors of memory into one: the first or last of each Distance elements.
template <int Distance, bool First, class D>
HWY_ATTR HWY_INLINE hn::VFromD<D> load_one_of(D d, const hn::TFromD<D>* src) {
    const auto load = [&](std::size_t k) HWY_ATTR { return hn::LoadU(d, src + k * hn::Lanes(d)); };
    if constexpr (Distance == 1) {
        return load(0);
    } else if constexpr (Distance == 2) {
        return every_second<First>(d, load(0), load(1));
    } else if constexpr (Distance == 4) {
        return every_second<First>(d, every_second<First>(d, load(0), load(1)),
                                   every_second<First>(d, load(2), load(3)));
    } else {
        hn::VFromD<D> first, second, last;
        hn::LoadInterleaved3(d, src, first, second, last);
        return First ? first : last;
    }
}

// Packs elements that are Distance apart, forwards or backwards; `count` must exceed a vector.
// Loads reach up to Distance - 1 elements too far towards element 0, so element 0 is moved alone.
// The last vector may overlap the vector before it.
template <int Distance, bool Backward, class D>
HWY_ATTR HWY_INLINE void step_vectors(D d, const hn::TFromD<D>* src, hn::TFromD<D>* dst,
                                      std::int64_t count) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::memcpy(dst, src, sizeof(*dst));
    for (std::int64_t next = 1; next < count; next += lanes) {
        const std::int64_t i = HWY_MIN(next, count - lanes);
        if constexpr (Backward) {
            const auto* const lowest = src - (i + lanes - 1) * Distance;
            hn::StoreU(reversed(d, load_one_of<Distance, true>(d, lowest)), d, dst + i);
        } else {
            const auto* const lowest = src + (i - 1) * Distance + 1;
            hn::StoreU(load_one_of<Distance, false>(d, lowest), d, dst + i);
        }
    }
}

// Returns false if there is no vector code for the distance.
template <class D>
HWY_ATTR HWY_INLINE bool step_by_vectors(D d, const std::byte* raw_src, std::byte* raw_dst,
                                         std::int64_t count, std::int64_t distance) {
    using lane = hn::TFromD<D>;
    const auto* const src = reinterpret_cast<const lane*>(raw_src);
    auto* const dst = reinterpret_cast<lane*>(raw_dst);
    switch (distance) {
    case -1:
        return step_vectors<1, true>(d, src, dst, count), true;
    case 2:
        return step_vectors<2, false>(d, src, dst, count), true;
    case -2:
        return step_vectors<2, true>(d, src, dst, count), true;
    case 3:
        return step_vectors<3, false>(d, src, dst, count), true;
    case -3:
        return step_vectors<3, true>(d, src, dst, count), true;
    case 4:
        return step_vectors<4, false>(d, src, dst, count), true;
    case -4:
        return step_vectors<4, true>(d, src, dst, count), true;
    default:
        return false;
    }
}

// Reverses elements of 16 bytes; `count` must fill a vector. The last vector may overlap the vector
// before it.
template <class D>
HWY_ATTR HWY_INLINE void reverse_blocks(D d, const std::byte* src, std::byte* dst,
                                        std::int64_t count) {
    using lane = hn::TFromD<D>;
    const auto blocks = static_cast<std::int64_t>(hn::Lanes(d) * sizeof(lane) / 16);
    for (std::int64_t next = 0; next < count; next += blocks) {
        const std::int64_t i = HWY_MIN(next, count - blocks);
        const auto* const lowest = reinterpret_cast<const lane*>(src - (i + blocks - 1) * 16);
        hn::StoreU(hn::ReverseBlocks(d, hn::LoadU(d, lowest)), d,
                   reinterpret_cast<lane*>(dst + i * 16));
    }
}

// Returns false if the distance has no vector code, or if there are too few elements.
template <std::size_t Width>
HWY_ATTR HWY_INLINE bool step_fast(const std::byte* src, std::byte* dst, std::int64_t count,
                                   std::int64_t step) {
    constexpr auto width = static_cast<std::int64_t>(Width);
    const hn::ScalableTag<lane_of<Width>> whole;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(whole));
    if constexpr (Width == 16) {
        if (step != -width || 2 * count < lanes) return false;
        return reverse_blocks(whole, src, dst, count), true;
    } else {
        const hn::CappedTag<lane_of<Width>, 16 / Width> shortest;
        if (step % width != 0) return false;
        if (count > lanes) return step_by_vectors(whole, src, dst, count, step / width);
        return count > static_cast<std::int64_t>(hn::Lanes(shortest)) &&
               step_by_vectors(shortest, src, dst, count, step / width);
    }
}

#endif

template <std::size_t Width>
HWY_ATTR void step_kernel(const pack_tile& tile) {
    const std::int64_t step = tile.layout.offsets[1];
    const std::int64_t items = tile.layout.items;
    for_each_group(tile, [&](const std::byte* strided, std::byte* buffer) HWY_ATTR {
#if HWY_TARGET != HWY_SCALAR
        if (step_fast<Width>(strided, buffer, items, step)) return;
#endif
        step_elements<Width>(strided, buffer, items, step);
    });
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_SELECT_STEP_INL
