// Loads elements of any type as f32 vectors, and stores them, for one Highway target.

#if defined(MASKWISE_KERNEL_ROWS_ELEMENTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ROWS_ELEMENTS_INL
#undef MASKWISE_KERNEL_ROWS_ELEMENTS_INL
#else
#define MASKWISE_KERNEL_ROWS_ELEMENTS_INL
#endif

#include "kernel/rows/contract.hpp"
#include "kernel/target-inl.hpp"

#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// Four vectors form a block.
using f32_tag = hn::CappedTag<float, row_block_elems / 4>;
using vec_f32 = hn::VFromD<f32_tag>;

HWY_INLINE constexpr std::int64_t f32_lanes() {
    return static_cast<std::int64_t>(hn::MaxLanes(f32_tag()));
}

HWY_ATTR HWY_INLINE vec_f32 load_bf16(const std::uint16_t* src) {
    const hn::RebindToUnsigned<f32_tag> du;
    const hn::Rebind<std::uint16_t, f32_tag> d16;
    return hn::BitCast(f32_tag(), hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, src))));
}

// On targets without an f16 instruction, Highway's conversion truncates and mishandles infinity.
constexpr bool has_f16_conversion =
    HWY_TARGET != HWY_SSE4 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128;

// Converts f16 in the lower half of each lane. The exponent bias of f16 is 112 less than the bias
// of f32. Infinity and NaN have the largest exponent in both types. Numbers below 2^-14 are
// subnormal.
HWY_ATTR HWY_INLINE vec_f32 from_f16_bits(hn::VFromD<hn::RebindToUnsigned<f32_tag>> half) {
    const f32_tag d;
    const hn::RebindToUnsigned<f32_tag> du;
    const auto magnitude = hn::And(half, hn::Set(du, 0x7FFF));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto offset = hn::Set(du, 112U << 23);
    const auto normal = hn::Add(shifted, offset);
    const auto tiny = hn::Sub(hn::BitCast(d, hn::Add(shifted, hn::Set(du, 113U << 23))),
                              hn::BitCast(d, hn::Set(du, 113U << 23)));
    auto bits =
        hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x400)), hn::BitCast(du, tiny), normal);
    bits = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x7C00)), bits, hn::Add(normal, offset));
    const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(du, 0x8000)));
    return hn::BitCast(d, hn::Or(bits, sign));
}

HWY_ATTR HWY_INLINE vec_f32 load_f16(const std::uint16_t* src) {
    const hn::RebindToUnsigned<f32_tag> du;
    const hn::Rebind<std::uint16_t, f32_tag> d16;
    const hn::Rebind<hwy::float16_t, f32_tag> d_half;
    if constexpr (has_f16_conversion)
        return hn::PromoteTo(f32_tag(),
                             hn::LoadU(d_half, reinterpret_cast<const hwy::float16_t*>(src)));
    else
        return from_f16_bits(hn::PromoteTo(du, hn::LoadU(d16, src)));
}

// Returns bf16 in the lower half of each lane, rounded to nearest even. Adds half an ulp, or just
// less if the truncated value is even, and truncates. NaNs become quiet NaNs.
HWY_ATTR HWY_INLINE auto bf16_bits(vec_f32 value) {
    const hn::RebindToUnsigned<f32_tag> du;
    const auto bits = hn::BitCast(du, value);
    const auto high = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(high, hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF))));
    const auto quiet = hn::Or(high, hn::Set(du, 0x40));
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), quiet, rounded);
}

// Returns f16 in the lower half of each lane, rounded to nearest even. Below 2^-14, adding 0.5
// rounds, because f32 at 0.5 has the ulp of subnormal f16. From 65520 on, the result is infinity.
HWY_ATTR HWY_INLINE auto f16_bits(vec_f32 value) {
    const f32_tag d;
    const hn::RebindToUnsigned<f32_tag> du;
    const auto bits = hn::BitCast(du, value);
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<13>(hn::Add(magnitude, hn::Add(odd, hn::Set(du, 0xFFF))));
    const auto normal = hn::Sub(rounded, hn::Set(du, 112U << 10));
    const auto tiny = hn::Sub(hn::BitCast(du, hn::Add(hn::Abs(value), hn::Set(d, 0.5F))),
                              hn::BitCast(du, hn::Set(d, 0.5F)));
    auto half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x38800000)), tiny, normal);
    half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x477FF000)), half, hn::Set(du, 0x7C00));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(value));
    half = hn::IfThenElse(is_nan, hn::Set(du, 0x7E00), half);
    return hn::Or(half, hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000)));
}

// Clamps first, because NearestInt is undefined beyond 32 bits.
template <typename Byte>
HWY_ATTR HWY_INLINE auto nearest_byte(vec_f32 value) {
    const hn::RebindToUnsigned<f32_tag> du;
    const hn::Rebind<std::uint8_t, f32_tag> d8;
    const auto low = hn::Set(f32_tag(), static_cast<float>(std::numeric_limits<Byte>::min()));
    const auto high = hn::Set(f32_tag(), static_cast<float>(std::numeric_limits<Byte>::max()));
    const auto whole = hn::NearestInt(hn::Min(hn::Max(value, low), high));
    static_assert(sizeof(hn::TFromD<decltype(du)>) == sizeof(float));
    return hn::BitCast(hn::Rebind<Byte, f32_tag>(), hn::TruncateTo(d8, hn::BitCast(du, whole)));
}

template <elem_type Type>
using row_element = std::conditional_t<
    Type == elem_type::f32, float,
    std::conditional_t<Type == elem_type::i8, std::int8_t,
                       std::conditional_t<Type == elem_type::u8, std::uint8_t, std::uint16_t>>>;
template <elem_type Type>
using element_tag = hn::Rebind<row_element<Type>, f32_tag>;

// Converts f32 to contiguous elements of the type.
template <elem_type Type>
HWY_ATTR HWY_INLINE auto elements_of(vec_f32 value) {
    const hn::RebindToSigned<f32_tag> di;
    const hn::Rebind<std::uint16_t, f32_tag> d16;
    if constexpr (Type == elem_type::f32) return value;
    if constexpr (Type == elem_type::bf16)
        return hn::DemoteTo(d16, hn::BitCast(di, bf16_bits(value)));
    if constexpr (Type == elem_type::f16 && has_f16_conversion)
        return hn::BitCast(d16, hn::DemoteTo(hn::Rebind<hwy::float16_t, f32_tag>(), value));
    if constexpr (Type == elem_type::f16 && !has_f16_conversion)
        return hn::DemoteTo(d16, hn::BitCast(di, f16_bits(value)));
    if constexpr (Type == elem_type::i8) return nearest_byte<std::int8_t>(value);
    if constexpr (Type == elem_type::u8) return nearest_byte<std::uint8_t>(value);
}

template <elem_type Type>
HWY_ATTR HWY_INLINE vec_f32 load_elements(const std::byte* src) {
    if constexpr (Type == elem_type::f32)
        return hn::LoadU(f32_tag(), reinterpret_cast<const float*>(src));
    const auto* half = reinterpret_cast<const std::uint16_t*>(src);
    if constexpr (Type == elem_type::bf16) return load_bf16(half);
    if constexpr (Type == elem_type::f16) return load_f16(half);
}

template <elem_type Type>
HWY_ATTR HWY_INLINE void store_elements(vec_f32 value, std::byte* dst) {
    hn::StoreU(elements_of<Type>(value), element_tag<Type>(),
               reinterpret_cast<row_element<Type>*>(dst));
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ROWS_ELEMENTS_INL
