// Applies a step to four vectors at once, for one Highway target.

#if defined(MASKWISE_KERNEL_ROWS_STEPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ROWS_STEPS_INL
#undef MASKWISE_KERNEL_ROWS_STEPS_INL
#else
#define MASKWISE_KERNEL_ROWS_STEPS_INL
#endif

#include "kernel/rows/elements-inl.hpp"

#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// Returns exp(x) for x <= 0; 0 for x < -87.3. The relative error is below 2^-22 + |x| * 2^-23. With
// x * log2(e) = n + f and an integer n, the result is 2^n times a polynomial of f. The polynomial
// minimizes the largest relative error on [-0.5, 0.5]. Its value is 1 at 0, and NaN for NaN. Adding
// 1.5 * 2^23 + 127 rounds to an integer and leaves n plus the exponent's bias in the lowest bits.
HWY_ATTR HWY_INLINE vec_f32 exp_below_one(vec_f32 x) {
    const f32_tag d;
    const hn::RebindToSigned<f32_tag> di;
    const auto log2_e = hn::Set(d, 1.44269504F), magic = hn::Set(d, 12582912.0F + 127.0F);
    const auto shifted = hn::MulAdd(x, log2_e, magic);
    const auto f = hn::MulSub(x, log2_e, hn::Sub(shifted, magic));
    auto p = hn::MulAdd(hn::Set(d, 1.3264728e-3F), f, hn::Set(d, 9.671513e-3F));
    p = hn::MulAdd(p, f, hn::Set(d, 5.5507336e-2F));
    p = hn::MulAdd(p, f, hn::Set(d, 2.4022242e-1F));
    p = hn::MulAdd(p, f, hn::Set(d, 6.9314700e-1F));
    p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
    const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3F)), hn::Mul(p, power));
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE vec_f32 apply_binary(vec_f32 row, vec_f32 side) {
    if constexpr (Operator == row_operator::add) return hn::Add(row, side);
    if constexpr (Operator == row_operator::subtract) return hn::Sub(row, side);
    if constexpr (Operator == row_operator::multiply) return hn::Mul(row, side);
    if constexpr (Operator == row_operator::divide) return hn::Div(row, side);
    if constexpr (Operator == row_operator::subtract_from) return hn::Sub(side, row);
    if constexpr (Operator == row_operator::divide_into) return hn::Div(side, row);
    if constexpr (Operator == row_operator::replace) return side;
}

// The computation of four vectors fits in 16 registers and hides the switch on the operator.
using row_block = vec_f32[4];

// Unrolled by hand, so that vector indexes are constants even without optimization.
template <class Apply>
HWY_ATTR HWY_INLINE void for_each_vector(const Apply& apply) {
    apply(0);
    apply(1);
    apply(2);
    apply(3);
}

// The columns of a block's four vectors: the first column, and each vector's offset from it. Inside
// a row, the offsets are constants, so an address is a register plus a constant. At the end of a
// row, vectors overlap instead of reading past the end. Computing an element twice is harmless.
struct row_columns {
    std::int64_t first;
    std::int64_t offsets[4];
};

HWY_ATTR HWY_INLINE row_columns columns_from(std::int64_t first) {
    constexpr std::int64_t lanes = f32_lanes();
    return {first, {0, lanes, 2 * lanes, 3 * lanes}};
}

// The last block of a row. Its vectors overlap in client memory, but not in the buffer, where a
// load that spans two recent stores would stall. So vectors from `first_short` on are rotated left
// by `shift` elements.
struct row_end {
    row_columns columns;
    std::int64_t first_short, shift;
};

HWY_ATTR HWY_INLINE row_end end_of_row(std::int64_t first, std::int64_t elems) {
    const std::int64_t lanes = f32_lanes(), last = (elems - 1) / lanes, rest = elems - lanes;
    const auto offset = [&](std::int64_t i) { return i < last ? i * lanes : rest; };
    return {{first, {offset(0), offset(1), offset(2), offset(3)}}, last, last * lanes - rest};
}

template <elem_type Type>
HWY_ATTR HWY_INLINE void load_block(const std::byte* src, const row_columns& columns,
                                    row_block& block) {
    constexpr std::int64_t width = bytes_of(Type);
    src += columns.first * width;
    for_each_vector([&](int i) MASKWISE_LAMBDA_ATTR {
        block[i] = load_elements<Type>(src + columns.offsets[i] * width);
    });
}

HWY_ATTR HWY_INLINE void load_side(const row_side& side, const row_columns& columns,
                                   row_block& block) {
    if (side.data == nullptr)
        block[0] = block[1] = block[2] = block[3] = hn::Set(f32_tag(), side.value);
    else if (side.type == elem_type::f32)
        load_block<elem_type::f32>(side.data, columns, block);
    else if (side.type == elem_type::bf16)
        load_block<elem_type::bf16>(side.data, columns, block);
    else
        load_block<elem_type::f16>(side.data, columns, block);
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE void combine_block(row_block& block, const row_block& side) {
    for_each_vector(
        [&](int i) MASKWISE_LAMBDA_ATTR { block[i] = apply_binary<Operator>(block[i], side[i]); });
}

HWY_ATTR HWY_INLINE vec_f32 select_by_bytes(const std::byte* cond, vec_f32 if_true,
                                            vec_f32 if_false) {
    const hn::RebindToUnsigned<f32_tag> du;
    const hn::Rebind<std::uint8_t, f32_tag> d8;
    const auto bytes = hn::PromoteTo(du, hn::LoadU(d8, as_bytes(cond)));
    const auto is_false = hn::RebindMask(f32_tag(), hn::Eq(bytes, hn::Zero(du)));
    return hn::IfThenElse(is_false, if_false, if_true);
}

HWY_ATTR HWY_INLINE void select_block(const std::byte* cond, const row_columns& columns,
                                      row_block& block, const row_block& side) {
    cond += columns.first;
    for_each_vector([&](int i) MASKWISE_LAMBDA_ATTR {
        block[i] = select_by_bytes(cond + columns.offsets[i], block[i], side[i]);
    });
}

HWY_ATTR HWY_INLINE vec_f32 rounded_to_f16(vec_f32 row) {
    if constexpr (has_f16_conversion)
        return hn::PromoteTo(f32_tag(), hn::DemoteTo(hn::Rebind<hwy::float16_t, f32_tag>(), row));
    else
        return from_f16_bits(f16_bits(row));
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE vec_f32 apply_unary(vec_f32 row, float constant = 0) {
    const f32_tag d;
    if constexpr (Operator == row_operator::tanh) return hn::Tanh(d, row);
    if constexpr (Operator == row_operator::leaky_relu)
        return hn::IfThenElse(hn::Gt(row, hn::Zero(d)), row, hn::Mul(hn::Set(d, constant), row));
    if constexpr (Operator == row_operator::round_bf16)
        return hn::BitCast(d, hn::ShiftLeft<16>(bf16_bits(row)));
    if constexpr (Operator == row_operator::round_f16) return rounded_to_f16(row);
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE void change_block(float constant, row_block& block) {
    for_each_vector(
        [&](int i) MASKWISE_LAMBDA_ATTR { block[i] = apply_unary<Operator>(block[i], constant); });
}

HWY_ATTR HWY_INLINE void unary_block(const row_action& action, row_block& block) {
    switch (action.op) {
#define MASKWISE_ROW_UNARY(name, ...)                                                              \
    case row_operator::name:                                                                       \
        return change_block<row_operator::name>(action.constant, block);
#define MASKWISE_ROW_ROUNDING(name) MASKWISE_ROW_UNARY(name, )
#include "kernel/rows/operators.inc"
    default:
        __builtin_unreachable();
    }
}

HWY_ATTR HWY_INLINE void apply_step(const row_action& action, const row_columns& columns,
                                    row_block& block) {
    if (!has_side(action.op)) return unary_block(action, block);
    row_block side;
    load_side(action.side, columns, side);
    switch (action.op) {
#define MASKWISE_ROW_REVERSED(name)                                                                \
    case row_operator::name:                                                                       \
        return combine_block<row_operator::name>(block, side);
#define MASKWISE_ROW_BINARY(name, ...) MASKWISE_ROW_REVERSED(name)
#include "kernel/rows/operators.inc"
    default:
        break;
    }
    if (action.op == row_operator::select_masked) {
        for_each_vector([&](int i) MASKWISE_LAMBDA_ATTR {
            const vec_f32 row = block[i];
            block[i] = side[i];
            side[i] = row;
        });
    }
    select_block(action.cond, columns, block, side);
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ROWS_STEPS_INL
