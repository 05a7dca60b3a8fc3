// The steps of a row on four vectors at once, for one Highway target.

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

// exp(x) for x up to 0, to 1.4 units in the last place near 0: 2^(n + f) with n whole, 2^n times a
// polynomial of f (least largest relative error on [-0.5, 0.5], 1 at 0). Adding 1.5 * 2^23 + 127
// rounds to an integer and leaves n, with the exponent's offset, in the lowest bits. Multiplied by
// whatever its bits give there, NaN stays NaN.
HWY_ATTR HWY_INLINE row_v exp_below_one(row_v x) {
    const row_d d;
    const hn::RebindToSigned<row_d> di;
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
HWY_ATTR HWY_INLINE row_v combined(row_v row, row_v side) {
    if constexpr (Operator == row_operator::add) return hn::Add(row, side);
    if constexpr (Operator == row_operator::subtract) return hn::Sub(row, side);
    if constexpr (Operator == row_operator::multiply) return hn::Mul(row, side);
    if constexpr (Operator == row_operator::divide) return hn::Div(row, side);
    if constexpr (Operator == row_operator::maximum)
        return hn::IfThenElse(hn::Gt(row, side), row, side);
    if constexpr (Operator == row_operator::minimum)
        return hn::IfThenElse(hn::Lt(row, side), row, side);
    if constexpr (Operator == row_operator::subtract_from) return hn::Sub(side, row);
    if constexpr (Operator == row_operator::divide_into) return hn::Div(side, row);
    if constexpr (Operator == row_operator::replace) return side;
}

// A block: few enough vectors for 16 registers, enough to hide what the choice of an operator
// costs.
using row_block = row_v[4];

// Four calls, not a loop: numbers of vectors are constants before anything else is optimised.
template <class Each>
HWY_ATTR HWY_INLINE void for_each_vector(const Each& each) {
    each(0);
    each(1);
    each(2);
    each(3);
}

// The columns of a block's four vectors: that of the first, and how far behind it each is:
// constants inside a row, so that addresses are one register and a number. At the end of a row they
// overlap: nothing behind it is read, and making an element twice does no harm.
struct row_columns {
    std::int64_t first;
    std::int64_t from[4];
};

HWY_ATTR HWY_INLINE row_columns columns_from(std::int64_t first) {
    constexpr std::int64_t lanes = row_lanes();
    return {first, {0, lanes, 2 * lanes, 3 * lanes}};
}

// Where a block at the end of a row lies in memory. The buffer has room behind the row, so there
// vectors stand side by side: one that overlaps another would be read back from two stores at once,
// which waits until both have left the core. Vectors from number `short_from` on are moved to the
// front by `moved` elements.
struct row_end {
    row_columns from;
    std::int64_t short_from, moved;
};

HWY_ATTR HWY_INLINE row_end end_of_row(std::int64_t first, std::int64_t elems) {
    const std::int64_t lanes = row_lanes(), last = (elems - 1) / lanes, rest = elems - lanes;
    const auto load = [&](std::int64_t i) { return i < last ? i * lanes : rest; };
    return {{first, {load(0), load(1), load(2), load(3)}}, last, last * lanes - rest};
}

template <row_type Type>
HWY_ATTR HWY_INLINE void load_block(const std::byte* from, const row_columns& at, row_block& made) {
    constexpr std::int64_t width = bytes_of(Type);
    from += at.first * width;
    for_each_vector([&](int i) MASKWISE_LAMBDA_ATTR {
        made[i] = load_elements<Type>(from + at.from[i] * width);
    });
}

HWY_ATTR HWY_INLINE void load_any(const row_side& from, const row_columns& at, row_block& made) {
    if (from.at == nullptr)
        made[0] = made[1] = made[2] = made[3] = hn::Set(row_d(), from.value);
    else if (from.type == row_type::f32)
        load_block<row_type::f32>(from.at, at, made);
    else if (from.type == row_type::bf16)
        load_block<row_type::bf16>(from.at, at, made);
    else
        load_block<row_type::f16>(from.at, at, made);
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE void combine_block(row_block& block, const row_block& side) {
    for_each_vector([&](int i)
                        MASKWISE_LAMBDA_ATTR { block[i] = combined<Operator>(block[i], side[i]); });
}

HWY_ATTR HWY_INLINE row_v selected(const std::byte* cond, row_v if_true, row_v if_false) {
    const hn::RebindToUnsigned<row_d> du;
    const hn::Rebind<std::uint8_t, row_d> d8;
    const auto bytes = hn::PromoteTo(du, hn::LoadU(d8, as_bytes(cond)));
    const auto is_false = hn::RebindMask(row_d(), hn::Eq(bytes, hn::Zero(du)));
    return hn::IfThenElse(is_false, if_false, if_true);
}

HWY_ATTR HWY_INLINE void select_block(const std::byte* cond, const row_columns& at,
                                      row_block& block, const row_block& side) {
    cond += at.first;
    for_each_vector([&](int i) MASKWISE_LAMBDA_ATTR {
        block[i] = selected(cond + at.from[i], block[i], side[i]);
    });
}

HWY_ATTR HWY_INLINE row_v rounded_to_f16(row_v row) {
    if constexpr (has_f16_conversion)
        return hn::PromoteTo(row_d(), hn::DemoteTo(hn::Rebind<hwy::float16_t, row_d>(), row));
    else
        return from_f16_bits(f16_bits(row));
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE row_v changed(row_v row, const row_constants& constants = {}) {
    const row_d d;
    const auto first = hn::Set(d, constants[0]), second = hn::Set(d, constants[1]);
    if constexpr (Operator == row_operator::tanh) return hn::Tanh(d, row);
    if constexpr (Operator == row_operator::leaky_relu)
        return hn::IfThenElse(hn::Gt(row, hn::Zero(d)), row, hn::Mul(first, row));
    if constexpr (Operator == row_operator::clamp)
        return combined<row_operator::minimum>(combined<row_operator::maximum>(row, first), second);
    if constexpr (Operator == row_operator::round_bf16)
        return hn::BitCast(d, hn::ShiftLeft<16>(bf16_bits(row)));
    if constexpr (Operator == row_operator::round_f16) return rounded_to_f16(row);
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE void change_block(const row_constants& constants, row_block& block) {
    for_each_vector(
        [&](int i) MASKWISE_LAMBDA_ATTR { block[i] = changed<Operator>(block[i], constants); });
}

HWY_ATTR HWY_INLINE void unary_block(const row_action& action, row_block& block) {
    switch (action.op) {
#define MASKWISE_ROW_UNARY(name, ...)                                                              \
    case row_operator::name:                                                                       \
        return change_block<row_operator::name>(action.constants, block);
#define MASKWISE_ROW_ROUNDING(name) MASKWISE_ROW_UNARY(name, )
#include "kernel/rows/operators.inc"
    default:
        __builtin_unreachable();
    }
}

HWY_ATTR HWY_INLINE void act(const row_action& action, const row_columns& at, row_block& block) {
    if (!has_side(action.op)) return unary_block(action, block);
    row_block side;
    load_any(action.side, at, side);
    switch (action.op) {
#define MASKWISE_ROW_TURNED(name)                                                                  \
    case row_operator::name:                                                                       \
        return combine_block<row_operator::name>(block, side);
#define MASKWISE_ROW_BINARY(name, ...) MASKWISE_ROW_TURNED(name)
#include "kernel/rows/operators.inc"
    default:
        break;
    }
    if (action.op == row_operator::select_masked) {
        for_each_vector([&](int i) MASKWISE_LAMBDA_ATTR {
            const row_v kept = block[i];
            block[i] = side[i];
            side[i] = kept;
        });
    }
    select_block(action.cond, at, block, side);
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ROWS_STEPS_INL
