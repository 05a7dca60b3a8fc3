// The kernel that packs elements at one distance from each other, for one Highway target.
//
// Reversed elements, and every second to fourth in either direction, are whole loads and one to
// three shuffles for a vector. At other distances it is a load and a store for an element.

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

// Four at a time, so that one address serves them all.
template <std::size_t Width>
HWY_ATTR HWY_INLINE void step_elements(const std::byte* from, std::byte* to, std::int64_t count,
                                       std::int64_t step) {
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4, from += 4 * step, to += 4 * Width) {
        std::memcpy(to, from, Width);
        std::memcpy(to + Width, from + step, Width);
        std::memcpy(to + 2 * Width, from + 2 * step, Width);
        std::memcpy(to + 3 * Width, from + 3 * step, Width);
    }
    for (; i < count; ++i, from += step, to += Width) std::memcpy(to, from, Width);
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

// One vector of every second element, from the first of them or from the second on.
template <bool FromFirst, class D>
HWY_ATTR HWY_INLINE hn::VFromD<D> every_second(D d, hn::VFromD<D> lower, hn::VFromD<D> upper) {
    return FromFirst ? hn::ConcatEven(d, upper, lower) : hn::ConcatOdd(d, upper, lower);
}

// One vector from Distance vectors of memory: of each Distance elements the first, or the last.
template <int Distance, bool First, class D>
HWY_ATTR HWY_INLINE hn::VFromD<D> load_one_of(D d, const hn::TFromD<D>* from) {
    const auto load = [&](std::size_t k) HWY_ATTR { return hn::LoadU(d, from + k * hn::Lanes(d)); };
    if constexpr (Distance == 1) {
        return load(0);
    } else if constexpr (Distance == 2) {
        return every_second<First>(d, load(0), load(1));
    } else if constexpr (Distance == 4) {
        return every_second<First>(d, every_second<First>(d, load(0), load(1)),
                                   every_second<First>(d, load(2), load(3)));
    } else {
        hn::VFromD<D> first, second, last;
        hn::LoadInterleaved3(d, from, first, second, last);
        return First ? first : last;
    }
}

// Elements Distance apart, forwards or backwards, more than a vector of them. A vector's loads
// reach up to Distance - 1 elements beyond its own; they lie towards element 0, which is therefore
// moved alone. The last vector overlaps the one before it.
template <int Distance, bool Backward, class D>
HWY_ATTR HWY_INLINE void step_vectors(D d, const hn::TFromD<D>* from, hn::TFromD<D>* to,
                                      std::int64_t count) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::memcpy(to, from, sizeof(*to));
    for (std::int64_t next = 1; next < count; next += lanes) {
        const std::int64_t i = HWY_MIN(next, count - lanes);
        if constexpr (Backward) {
            const auto* const lowest = from - (i + lanes - 1) * Distance;
            hn::StoreU(reversed(d, load_one_of<Distance, true>(d, lowest)), d, to + i);
        } else {
            const auto* const lowest = from + (i - 1) * Distance + 1;
            hn::StoreU(load_one_of<Distance, false>(d, lowest), d, to + i);
        }
    }
}

// False where there is no vector code for the distance.
template <class D>
HWY_ATTR HWY_INLINE bool step_by_vectors(D d, const std::byte* raw_from, std::byte* raw_to,
                                         std::int64_t count, std::int64_t distance) {
    using lane = hn::TFromD<D>;
    const auto* const from = reinterpret_cast<const lane*>(raw_from);
    auto* const to = reinterpret_cast<lane*>(raw_to);
    switch (distance) {
    case -1:
        return step_vectors<1, true>(d, from, to, count), true;
    case 2:
        return step_vectors<2, false>(d, from, to, count), true;
    case -2:
        return step_vectors<2, true>(d, from, to, count), true;
    case 3:
        return step_vectors<3, false>(d, from, to, count), true;
    case -3:
        return step_vectors<3, true>(d, from, to, count), true;
    case 4:
        return step_vectors<4, false>(d, from, to, count), true;
    case -4:
        return step_vectors<4, true>(d, from, to, count), true;
    default:
        return false;
    }
}

// Elements of 16 bytes, backwards; at least a vector of them. What does not fill one overlaps.
template <class D>
HWY_ATTR HWY_INLINE void reverse_blocks(D d, const std::byte* from, std::byte* to,
                                        std::int64_t count) {
    using lane = hn::TFromD<D>;
    const auto blocks = static_cast<std::int64_t>(hn::Lanes(d) * sizeof(lane) / 16);
    for (std::int64_t next = 0; next < count; next += blocks) {
        const std::int64_t i = HWY_MIN(next, count - blocks);
        const auto* const lowest = reinterpret_cast<const lane*>(from - (i + blocks - 1) * 16);
        hn::StoreU(hn::ReverseBlocks(d, hn::LoadU(d, lowest)), d,
                   reinterpret_cast<lane*>(to + i * 16));
    }
}

// False where there is no vector code for the distance, or are too few elements for it.
template <std::size_t Width>
HWY_ATTR HWY_INLINE bool step_fast(const std::byte* from, std::byte* to, std::int64_t count,
                                   std::int64_t step) {
    constexpr auto width = static_cast<std::int64_t>(Width);
    const hn::ScalableTag<lane_of<Width>> whole;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(whole));
    if constexpr (Width == 16) {
        if (step != -width || 2 * count < lanes) return false;
        return reverse_blocks(whole, from, to, count), true;
    } else {
        const hn::CappedTag<lane_of<Width>, 16 / Width> shortest;
        if (step % width != 0) return false;
        if (count > lanes) return step_by_vectors(whole, from, to, count, step / width);
        return count > static_cast<std::int64_t>(hn::Lanes(shortest)) &&
               step_by_vectors(shortest, from, to, count, step / width);
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
