// Row arithmetic for one Highway target; included once a target by kernels.cpp.

#if defined(MASKWISE_KERNEL_ROW_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ROW_INL
#undef MASKWISE_KERNEL_ROW_INL
#else
#define MASKWISE_KERNEL_ROW_INL
#endif

#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

using row_d = hn::CappedTag<float, row_padding_elems>;
using row_v = hn::VFromD<row_d>;

HWY_ATTR HWY_INLINE std::int64_t row_lanes() {
    return static_cast<std::int64_t>(hn::Lanes(row_d()));
}

HWY_ATTR HWY_INLINE row_v load_bf16(const std::uint16_t* from) {
    const hn::RebindToUnsigned<row_d> du;
    const hn::Rebind<std::uint16_t, row_d> d16;
    return hn::BitCast(row_d(), hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, from))));
}

HWY_ATTR HWY_INLINE row_v load_f16(const std::uint16_t* from) {
    const hn::Rebind<hwy::float16_t, row_d> d16;
    return hn::PromoteTo(row_d(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
}

// Round to nearest even by adding just under half a unit; NaNs stay NaNs and become quiet.
HWY_ATTR HWY_INLINE void store_bf16(row_v value, std::uint16_t* to) {
    const hn::RebindToUnsigned<row_d> du;
    const hn::RebindToSigned<row_d> di;
    const hn::Rebind<std::uint16_t, row_d> d16;
    const auto bits = hn::BitCast(du, value);
    const auto high = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(high, hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF))));
    const auto quiet = hn::Or(high, hn::Set(du, 0x40));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(value));
    const auto result = hn::IfThenElse(is_nan, quiet, rounded);
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, result)), d16, to);
}

HWY_ATTR HWY_INLINE void store_f16(row_v value, std::uint16_t* to) {
    const hn::Rebind<hwy::float16_t, row_d> d16;
    hn::StoreU(hn::DemoteTo(d16, value), d16, reinterpret_cast<hwy::float16_t*>(to));
}

HWY_ATTR inline row_v load_elements(const std::byte* from, row_type type) {
    if (type == row_type::f32) return hn::LoadU(row_d(), reinterpret_cast<const float*>(from));
    const auto* half = reinterpret_cast<const std::uint16_t*>(from);
    return type == row_type::bf16 ? load_bf16(half) : load_f16(half);
}

HWY_ATTR inline void store_elements(row_v value, std::byte* to, row_type type) {
    if (type == row_type::f32) return hn::StoreU(value, row_d(), reinterpret_cast<float*>(to));
    auto* half = reinterpret_cast<std::uint16_t*>(to);
    return type == row_type::bf16 ? store_bf16(value, half) : store_f16(value, half);
}

constexpr std::int64_t bytes_of(row_type type) {
    return type == row_type::f32 ? 4 : 2;
}

// Below one vector, said so that the compiler sees it, too.
constexpr std::size_t rest_bytes(std::int64_t elems, std::int64_t width) {
    return static_cast<std::size_t>(elems % row_padding_elems) * static_cast<std::size_t>(width);
}

// The last elements go through a small array: the client's memory ends with the row.
HWY_ATTR inline void row_load(const std::byte* from, row_type type, float* buffer,
                              std::int64_t elems) {
    const std::int64_t width = bytes_of(type), lanes = row_lanes();
    std::int64_t i = 0;
    for (; i + lanes <= elems; i += lanes)
        hn::StoreU(load_elements(from + i * width, type), row_d(), buffer + i);
    if (i == elems) return;
    std::byte rest[row_padding_elems * sizeof(float)] = {};
    std::memcpy(rest, from + i * width, rest_bytes(elems - i, width));
    hn::StoreU(load_elements(rest, type), row_d(), buffer + i);
}

HWY_ATTR inline void row_store(const float* buffer, float factor, std::byte* to, row_type type,
                               std::int64_t elems) {
    const std::int64_t width = bytes_of(type), lanes = row_lanes();
    const auto scale = hn::Set(row_d(), factor);
    std::int64_t i = 0;
    for (; i + lanes <= elems; i += lanes)
        store_elements(hn::Mul(hn::LoadU(row_d(), buffer + i), scale), to + i * width, type);
    if (i == elems) return;
    std::byte rest[row_padding_elems * sizeof(float)];
    store_elements(hn::Mul(hn::LoadU(row_d(), buffer + i), scale), rest, type);
    std::memcpy(to + i * width, rest, rest_bytes(elems - i, width));
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE row_v apply(row_v a, row_v b) {
    if constexpr (Operator == row_operator::add) return hn::Add(a, b);
    if constexpr (Operator == row_operator::subtract) return hn::Sub(a, b);
    if constexpr (Operator == row_operator::multiply) return hn::Mul(a, b);
    if constexpr (Operator == row_operator::divide) return hn::Div(a, b);
}

// A side that stands still has step 0 and lies in an array of one vector.
template <row_operator Operator>
HWY_ATTR inline void combine_by(float* buffer, const float* side, std::int64_t side_step,
                                std::int64_t padded) {
    const std::int64_t lanes = row_lanes();
    for (std::int64_t i = 0; i < padded; i += lanes) {
        const auto other = hn::LoadU(row_d(), side + i * side_step);
        hn::StoreU(apply<Operator>(hn::LoadU(row_d(), buffer + i), other), row_d(), buffer + i);
    }
}

HWY_ATTR inline void combine_any(float* buffer, const float* side, std::int64_t side_step,
                                 row_operator op, std::int64_t padded) {
    switch (op) {
    case row_operator::add:
        return combine_by<row_operator::add>(buffer, side, side_step, padded);
    case row_operator::subtract:
        return combine_by<row_operator::subtract>(buffer, side, side_step, padded);
    case row_operator::multiply:
        return combine_by<row_operator::multiply>(buffer, side, side_step, padded);
    case row_operator::divide:
        return combine_by<row_operator::divide>(buffer, side, side_step, padded);
    }
}

HWY_ATTR inline void row_combine(float* buffer, const float* side, row_operator op,
                                 std::int64_t padded) {
    combine_any(buffer, side, 1, op, padded);
}

HWY_ATTR inline void row_combine_scalar(float* buffer, float side, row_operator op,
                                        std::int64_t padded) {
    float sides[row_padding_elems];
    hn::StoreU(hn::Set(row_d(), side), row_d(), sides);
    combine_any(buffer, sides, 0, op, padded);
}

HWY_ATTR inline void select_by(float* buffer, const std::byte* cond, const float* other,
                               std::int64_t other_step, bool keep_true, std::int64_t padded) {
    const hn::RebindToUnsigned<row_d> du;
    const hn::Rebind<std::uint8_t, row_d> d8;
    const std::int64_t lanes = row_lanes();
    for (std::int64_t i = 0; i < padded; i += lanes) {
        const auto bytes = hn::PromoteTo(du, hn::LoadU(d8, as_bytes(cond + i)));
        const auto is_false = hn::RebindMask(row_d(), hn::Eq(bytes, hn::Zero(du)));
        const auto kept = hn::LoadU(row_d(), buffer + i);
        const auto given = hn::LoadU(row_d(), other + i * other_step);
        const auto chosen = keep_true ? hn::IfThenElse(is_false, given, kept)
                                      : hn::IfThenElse(is_false, kept, given);
        hn::StoreU(chosen, row_d(), buffer + i);
    }
}

HWY_ATTR inline void row_select(float* buffer, const std::byte* cond, const float* other,
                                bool keep_true, std::int64_t padded) {
    select_by(buffer, cond, other, 1, keep_true, padded);
}

HWY_ATTR inline void row_select_scalar(float* buffer, const std::byte* cond, float other,
                                       bool keep_true, std::int64_t padded) {
    float others[row_padding_elems];
    hn::StoreU(hn::Set(row_d(), other), row_d(), others);
    select_by(buffer, cond, others, 0, keep_true, padded);
}

// Two chains, since a maximum takes several cycles to arrive.
HWY_ATTR inline float row_maximum(const float* buffer, std::int64_t padded) {
    const std::int64_t lanes = row_lanes();
    auto first = hn::LoadU(row_d(), buffer), second = first;
    std::int64_t i = lanes;
    for (; i + lanes < padded; i += 2 * lanes) {
        first = hn::Max(first, hn::LoadU(row_d(), buffer + i));
        second = hn::Max(second, hn::LoadU(row_d(), buffer + i + lanes));
    }
    for (; i < padded; i += lanes) first = hn::Max(first, hn::LoadU(row_d(), buffer + i));
    return hn::GetLane(hn::MaxOfLanes(row_d(), hn::Max(first, second)));
}

HWY_ATTR inline float row_exp_sum(float* buffer, float shift, std::int64_t padded) {
    const std::int64_t lanes = row_lanes();
    const auto shifts = hn::Set(row_d(), shift);
    auto sum = hn::Zero(row_d());
    for (std::int64_t i = 0; i < padded; i += lanes) {
        const auto value = hn::Exp(row_d(), hn::Sub(hn::LoadU(row_d(), buffer + i), shifts));
        hn::StoreU(value, row_d(), buffer + i);
        sum = hn::Add(sum, value);
    }
    return hn::GetLane(hn::SumOfLanes(row_d(), sum));
}

constexpr row_kernels rows{row_load,   row_store,         row_combine, row_combine_scalar,
                           row_select, row_select_scalar, row_maximum, row_exp_sum};

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();

#endif // per-target include guard
