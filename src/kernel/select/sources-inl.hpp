// Loads and stores of the Select kernels for one Highway target.

#if defined(MASKWISE_KERNEL_SELECT_SOURCES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_SELECT_SOURCES_INL
#undef MASKWISE_KERNEL_SELECT_SOURCES_INL
#else
#define MASKWISE_KERNEL_SELECT_SOURCES_INL
#endif

#include "kernel/select/contract.hpp"
#include "kernel/target-inl.hpp"

#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// Keeps the compiler from merging a load and its blend into a masked load. A masked load would
// request its cache line only after cond's cache line has arrived.
template <class V>
HWY_ATTR HWY_INLINE V load_now(V v) {
#if HWY_TARGET == HWY_AVX3
    __asm__("" : "+v"(v.raw));
#endif
    return v;
}

template <std::size_t Width>
constexpr std::size_t lanes_per_element = Width > 8 ? 2 : 1;

// A source with one element per column.
template <std::size_t Width>
struct unit_source {
    using lane = lane_of<Width>;
    const std::byte* row;

    template <class D>
    HWY_ATTR HWY_INLINE hn::VFromD<D> load(D d, std::size_t i) const {
        return load_now(hn::LoadU(d, reinterpret_cast<const lane*>(row + i * Width)));
    }
    HWY_ATTR HWY_INLINE const std::byte* element(std::size_t i) const { return row + i * Width; }
};

// A source with one element per row. Copies the element, because the compiler assumes that stores
// to dst may change the source.
template <std::size_t Width>
struct zero_source {
    using lane = lane_of<Width>;
    const std::byte* row;
    lane value[Width > 8 ? 2 : 1];

    explicit HWY_ATTR HWY_INLINE zero_source(const std::byte* element) : row(element) {
        std::memcpy(value, element, Width);
    }
    template <class D>
    HWY_ATTR HWY_INLINE hn::VFromD<D> load(D d, std::size_t) const {
        if constexpr (Width > 8)
            return hn::OddEven(hn::Set(d, value[1]), hn::Set(d, value[0]));
        else
            return hn::Set(d, value[0]);
    }
    HWY_ATTR HWY_INLINE const std::byte* element(std::size_t) const {
        return reinterpret_cast<const std::byte*>(value);
    }
};

template <std::size_t Width, column_class Class>
using select_source =
    std::conditional_t<Class == column_class::unit, unit_source<Width>, zero_source<Width>>;

#if HWY_TARGET != HWY_SCALAR

// False for AVX-512, whose mask registers are slower to combine and test.
constexpr bool masks_are_vectors = HWY_MAX_BYTES <= 32;

template <std::size_t Width>
struct vectors {
    using lane = lane_of<Width>;
    using tag = hn::ScalableTag<lane>;
    using byte_tag = hn::ScalableTag<std::uint8_t>;
    static HWY_ATTR HWY_INLINE std::size_t elements() {
        return hn::Lanes(tag()) / lanes_per_element<Width>;
    }
    // The number of elements whose cond bytes are tested together: at least four vectors of
    // elements and one vector of cond bytes.
    static HWY_ATTR HWY_INLINE std::size_t block() {
        if constexpr (Width == 1 && masks_are_vectors) return 4 * hn::Lanes(byte_tag());
        constexpr std::size_t min_elements = Width < 4 ? 256 / Width : 64;
        return HWY_MAX(min_elements, hn::Lanes(byte_tag()));
    }
};

// Callers only compare the result with zero.
template <class D, class V8>
HWY_ATTR HWY_INLINE hn::VFromD<D> widen(D d, V8 v) {
    using T = hn::TFromD<D>;
    if constexpr (sizeof(T) == 1) {
        return v;
    } else if constexpr (sizeof(T) == 8) {
        return hn::PromoteTo(d, hn::PromoteTo(hn::Rebind<std::uint32_t, D>(), v));
    } else {
        return hn::PromoteTo(d, v);
    }
}

// Loads one lane of D per cond byte, or two equal lanes for elements of 16 bytes.
template <std::size_t Width, class D>
HWY_ATTR HWY_INLINE hn::VFromD<D> load_cond(D d, const std::byte* cond) {
    const hn::Rebind<std::uint8_t, D> d8;
    if constexpr (Width == 16) {
        const hn::Half<decltype(d8)> half;
        const auto bytes = hn::ZeroExtendVector(d8, hn::LoadU(half, as_bytes(cond)));
        return widen(d, hn::InterleaveLower(d8, bytes, bytes));
    } else {
        return widen(d, hn::LoadU(d8, as_bytes(cond)));
    }
}

template <store_policy Store, class D>
HWY_ATTR HWY_INLINE void store_vector(hn::VFromD<D> v, D d, std::byte* dst) {
    auto* lanes = reinterpret_cast<hn::TFromD<D>*>(dst);
    if constexpr (Store == store_policy::stream)
        hn::Stream(v, d, lanes);
    else
        hn::StoreU(v, d, lanes);
}

// A source that loads the selected elements.
template <std::size_t Width, class S0, class S1>
struct selection {
    const std::byte* cond;
    S0 src_0;
    S1 src_1;

    template <class D>
    HWY_ATTR HWY_INLINE hn::VFromD<D> load(D d, std::size_t i) const {
        const auto is_false = hn::Eq(load_cond<Width>(d, cond + i), hn::Zero(d));
        return hn::IfThenElse(is_false, src_1.load(d, i), src_0.load(d, i));
    }
};

#endif

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_SELECT_SOURCES_INL
