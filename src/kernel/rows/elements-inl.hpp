// Elements of rows in memory to and from f32 in registers, for one Highway target.

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

// Four of them are a block.
using row_d = hn::CappedTag<float, row_block_elems / 4>;
using row_v = hn::VFromD<row_d>;

HWY_INLINE constexpr std::int64_t row_lanes() {
    return static_cast<std::int64_t>(hn::MaxLanes(row_d()));
}

HWY_ATTR HWY_INLINE row_v load_bf16(const std::uint16_t* from) {
    const hn::RebindToUnsigned<row_d> du;
    const hn::Rebind<std::uint16_t, row_d> d16;
    return hn::BitCast(row_d(), hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, from))));
}

// Highway's own conversions of targets without such an instruction know no infinity and cut off
// instead of rounding.
constexpr bool has_f16_conversion =
    HWY_TARGET != HWY_SSE4 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128;

// From f16 in the lower half of each lane. The exponent's offset is 112 less than f32's; that of
// infinity and NaN is the largest in both; numbers below 2^-14 have no leading one.
HWY_ATTR HWY_INLINE row_v from_f16_bits(hn::VFromD<hn::RebindToUnsigned<row_d>> half) {
    const row_d d;
    const hn::RebindToUnsigned<row_d> du;
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

HWY_ATTR HWY_INLINE row_v load_f16(const std::uint16_t* from) {
    const hn::RebindToUnsigned<row_d> du;
    const hn::Rebind<std::uint16_t, row_d> d16;
    const hn::Rebind<hwy::float16_t, row_d> d_half;
    if constexpr (has_f16_conversion)
        return hn::PromoteTo(row_d(),
                             hn::LoadU(d_half, reinterpret_cast<const hwy::float16_t*>(from)));
    else
        return from_f16_bits(hn::PromoteTo(du, hn::LoadU(d16, from)));
}

// In the lower half of each lane. Rounds to nearest even by adding just under half a unit; NaNs
// stay NaNs and become quiet.
HWY_ATTR HWY_INLINE auto bf16_bits(row_v value) {
    const hn::RebindToUnsigned<row_d> du;
    const auto bits = hn::BitCast(du, value);
    const auto high = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(high, hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF))));
    const auto quiet = hn::Or(high, hn::Set(du, 0x40));
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), quiet, rounded);
}

// f16 in the lower half of each lane, to nearest even. Below 2^-14 the unit is that of 0.5 in f32,
// so adding it rounds; from 65520 on the nearest is infinity.
HWY_ATTR HWY_INLINE auto f16_bits(row_v value) {
    const row_d d;
    const hn::RebindToUnsigned<row_d> du;
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

// Clamped first: a number beyond 32 bits has no nearest integer.
template <typename Byte>
HWY_ATTR HWY_INLINE auto nearest_byte(row_v value) {
    const hn::RebindToUnsigned<row_d> du;
    const hn::Rebind<std::uint8_t, row_d> d8;
    const auto low = hn::Set(row_d(), static_cast<float>(std::numeric_limits<Byte>::min()));
    const auto high = hn::Set(row_d(), static_cast<float>(std::numeric_limits<Byte>::max()));
    const auto whole = hn::NearestInt(hn::Min(hn::Max(value, low), high));
    static_assert(sizeof(hn::TFromD<decltype(du)>) == sizeof(float));
    return hn::BitCast(hn::Rebind<Byte, row_d>(), hn::TruncateTo(d8, hn::BitCast(du, whole)));
}

template <row_type Type>
using row_element = std::conditional_t<
    Type == row_type::f32, float,
    std::conditional_t<Type == row_type::i8, std::int8_t,
                       std::conditional_t<Type == row_type::u8, std::uint8_t, std::uint16_t>>>;
template <row_type Type>
using element_tag = hn::Rebind<row_element<Type>, row_d>;

// The row's elements as they are stored, side by side.
template <row_type Type>
HWY_ATTR HWY_INLINE auto elements_of(row_v value) {
    const hn::RebindToSigned<row_d> di;
    const hn::Rebind<std::uint16_t, row_d> d16;
    if constexpr (Type == row_type::f32) return value;
    if constexpr (Type == row_type::bf16)
        return hn::DemoteTo(d16, hn::BitCast(di, bf16_bits(value)));
    if constexpr (Type == row_type::f16 && has_f16_conversion)
        return hn::BitCast(d16, hn::DemoteTo(hn::Rebind<hwy::float16_t, row_d>(), value));
    if constexpr (Type == row_type::f16 && !has_f16_conversion)
        return hn::DemoteTo(d16, hn::BitCast(di, f16_bits(value)));
    if constexpr (Type == row_type::i8) return nearest_byte<std::int8_t>(value);
    if constexpr (Type == row_type::u8) return nearest_byte<std::uint8_t>(value);
}

template <row_type Type>
HWY_ATTR HWY_INLINE row_v load_elements(const std::byte* from) {
    if constexpr (Type == row_type::f32)
        return hn::LoadU(row_d(), reinterpret_cast<const float*>(from));
    const auto* half = reinterpret_cast<const std::uint16_t*>(from);
    if constexpr (Type == row_type::bf16) return load_bf16(half);
    if constexpr (Type == row_type::f16) return load_f16(half);
}

template <row_type Type>
HWY_ATTR HWY_INLINE void store_elements(row_v value, std::byte* to) {
    hn::StoreU(elements_of<Type>(value), element_tag<Type>(),
               reinterpret_cast<row_element<Type>*>(to));
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ROWS_ELEMENTS_INL
