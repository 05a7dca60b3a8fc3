// The steps of a row on four vectors at once, for one Highway target.

#include "kernel/row_elements-inl.hpp"

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

// The columns of a block's four vectors: that of the first and how far behind it the others are,
// constants inside a row, so that addresses are one register and a number. At the end of a row they
// overlap: nothing behind it is read, and making an element twice does no harm.
struct row_columns {
    std::int64_t first, a, b, c, d;
};

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
    return {{first, load(0), load(1), load(2), load(3)}, last, last * lanes - rest};
}

// Four vectors by reference, since vectors of unknown length cannot be members or elements.
template <row_type Type>
HWY_ATTR HWY_INLINE void load_block(const std::byte* from, const row_columns& at, row_v& a,
                                    row_v& b, row_v& c, row_v& d) {
    constexpr std::int64_t width = bytes_of(Type);
    from += at.first * width;
    a = load_elements<Type>(from + at.a * width);
    b = load_elements<Type>(from + at.b * width);
    c = load_elements<Type>(from + at.c * width);
    d = load_elements<Type>(from + at.d * width);
}

HWY_ATTR HWY_INLINE void load_any(const row_side& from, const row_columns& at, row_v& a, row_v& b,
                                  row_v& c, row_v& d) {
    if (from.at == nullptr)
        a = b = c = d = hn::Set(row_d(), from.value);
    else if (from.type == row_type::f32)
        load_block<row_type::f32>(from.at, at, a, b, c, d);
    else if (from.type == row_type::bf16)
        load_block<row_type::bf16>(from.at, at, a, b, c, d);
    else
        load_block<row_type::f16>(from.at, at, a, b, c, d);
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE void combine_block(row_v& a, row_v& b, row_v& c, row_v& d, row_v side_a,
                                       row_v side_b, row_v side_c, row_v side_d) {
    a = combined<Operator>(a, side_a);
    b = combined<Operator>(b, side_b);
    c = combined<Operator>(c, side_c);
    d = combined<Operator>(d, side_d);
}

HWY_ATTR HWY_INLINE row_v selected(const std::byte* cond, row_v if_true, row_v if_false) {
    const hn::RebindToUnsigned<row_d> du;
    const hn::Rebind<std::uint8_t, row_d> d8;
    const auto bytes = hn::PromoteTo(du, hn::LoadU(d8, as_bytes(cond)));
    const auto is_false = hn::RebindMask(row_d(), hn::Eq(bytes, hn::Zero(du)));
    return hn::IfThenElse(is_false, if_false, if_true);
}

HWY_ATTR HWY_INLINE void select_block(const std::byte* cond, const row_columns& at, row_v& a,
                                      row_v& b, row_v& c, row_v& d, row_v side_a, row_v side_b,
                                      row_v side_c, row_v side_d) {
    cond += at.first;
    a = selected(cond + at.a, a, side_a);
    b = selected(cond + at.b, b, side_b);
    c = selected(cond + at.c, c, side_c);
    d = selected(cond + at.d, d, side_d);
}

HWY_ATTR HWY_INLINE void compare_block(const std::array<row_side, 2>& compared,
                                       const row_columns& at, row_v& a, row_v& b, row_v& c,
                                       row_v& d, row_v side_a, row_v side_b, row_v side_c,
                                       row_v side_d) {
    row_v high_a, high_b, high_c, high_d, low_a, low_b, low_c, low_d;
    load_any(compared[0], at, high_a, high_b, high_c, high_d);
    load_any(compared[1], at, low_a, low_b, low_c, low_d);
    a = hn::IfThenElse(hn::Ge(high_a, low_a), a, side_a);
    b = hn::IfThenElse(hn::Ge(high_b, low_b), b, side_b);
    c = hn::IfThenElse(hn::Ge(high_c, low_c), c, side_c);
    d = hn::IfThenElse(hn::Ge(high_d, low_d), d, side_d);
}

HWY_ATTR HWY_INLINE row_v rounded_to_f16(row_v row) {
    if constexpr (has_f16_conversion)
        return hn::PromoteTo(row_d(), hn::DemoteTo(hn::Rebind<hwy::float16_t, row_d>(), row));
    else
        return from_f16_bits(f16_bits(row));
}

// exp(x) of any number: as above, but x is reduced in two parts (Cody and Waite), of which the
// first times n is exact. Twice 2^(n - 1), where 2^n may be infinite. From 89 on the result is
// infinite.
HWY_ATTR HWY_INLINE row_v exp_of_any(row_v x) {
    const row_d d;
    const hn::RebindToSigned<row_d> di;
    const auto most = hn::Set(d, 89.0F), magic = hn::Set(d, 12582912.0F + 126.0F);
    x = hn::IfThenElse(hn::Gt(x, most), most, x); // NaN stays
    const auto is_low = hn::Lt(x, hn::Zero(d));
    const auto offset = hn::IfThenElse(is_low, hn::Set(d, 12582912.0F + 127.0F), magic);
    const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504F), offset);
    const auto n = hn::Sub(shifted, offset);
    auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x);
    r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
    auto p = hn::MulAdd(hn::Set(d, 1.9875691e-4F), r, hn::Set(d, 1.3981999e-3F));
    p = hn::MulAdd(p, r, hn::Set(d, 8.3334519e-3F));
    p = hn::MulAdd(p, r, hn::Set(d, 4.1665796e-2F));
    p = hn::MulAdd(p, r, hn::Set(d, 1.6666666e-1F));
    p = hn::MulAdd(p, r, hn::Set(d, 5.0000001e-1F));
    p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(d, 1.0F)));
    p = hn::IfThenElse(is_low, p, hn::Add(p, p));
    const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.33654F)), hn::Mul(p, power));
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE row_v changed(row_v row, const row_constants& constants = {}) {
    const row_d d;
    const auto one = hn::Set(d, 1.0F);
    const auto first = hn::Set(d, constants[0]), second = hn::Set(d, constants[1]);
    if constexpr (Operator == row_operator::abs) return hn::Abs(row);
    if constexpr (Operator == row_operator::square) return hn::Mul(row, row);
    if constexpr (Operator == row_operator::sqrt) return hn::Sqrt(row);
    if constexpr (Operator == row_operator::exp) return exp_of_any(row);
    if constexpr (Operator == row_operator::tanh) return hn::Tanh(d, row);
    if constexpr (Operator == row_operator::sigmoid)
        return hn::Div(one, hn::Add(one, exp_of_any(hn::Neg(row))));
    if constexpr (Operator == row_operator::relu)
        return hn::IfThenElseZero(hn::Gt(row, hn::Zero(d)), row);
    if constexpr (Operator == row_operator::leaky_relu)
        return hn::IfThenElse(hn::Gt(row, hn::Zero(d)), row, hn::Mul(first, row));
    if constexpr (Operator == row_operator::clamp)
        return combined<row_operator::minimum>(combined<row_operator::maximum>(row, first), second);
    if constexpr (Operator == row_operator::round_bf16)
        return hn::BitCast(d, hn::ShiftLeft<16>(bf16_bits(row)));
    if constexpr (Operator == row_operator::round_f16) return rounded_to_f16(row);
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE void change_block(const row_constants& constants, row_v& a, row_v& b, row_v& c,
                                      row_v& d) {
    a = changed<Operator>(a, constants);
    b = changed<Operator>(b, constants);
    c = changed<Operator>(c, constants);
    d = changed<Operator>(d, constants);
}

HWY_ATTR HWY_INLINE void unary_block(const row_action& action, row_v& a, row_v& b, row_v& c,
                                     row_v& d) {
    switch (action.op) {
#define MASKWISE_ROW_UNARY(name, onnx)                                                             \
    case row_operator::name:                                                                       \
        return change_block<row_operator::name>(action.constants, a, b, c, d);
#define MASKWISE_ROW_ROUNDING(name) MASKWISE_ROW_UNARY(name, "")
#include "kernel/row_operators.inc"
    default:
        __builtin_unreachable();
    }
}

// std::swap takes no vectors of unknown length.
HWY_ATTR HWY_INLINE void exchange(row_v& a, row_v& b) {
    const row_v kept = a;
    a = b;
    b = kept;
}

HWY_ATTR HWY_INLINE void act(const row_action& action, const row_columns& at, row_v& a, row_v& b,
                             row_v& c, row_v& d) {
    if (!has_side(action.op)) return unary_block(action, a, b, c, d);
    row_v side_a, side_b, side_c, side_d;
    load_any(action.side, at, side_a, side_b, side_c, side_d);
    switch (action.op) {
#define MASKWISE_ROW_TURNED(name)                                                                  \
    case row_operator::name:                                                                       \
        return combine_block<row_operator::name>(a, b, c, d, side_a, side_b, side_c, side_d);
#define MASKWISE_ROW_BINARY(name, turned, onnx) MASKWISE_ROW_TURNED(name)
#include "kernel/row_operators.inc"
    default:
        break;
    }
    if (action.op == row_operator::select_masked) {
        exchange(a, side_a);
        exchange(b, side_b);
        exchange(c, side_c);
        exchange(d, side_d);
    }
    if (action.cond != nullptr)
        select_block(action.cond, at, a, b, c, d, side_a, side_b, side_c, side_d);
    else
        compare_block(action.compared, at, a, b, c, d, side_a, side_b, side_c, side_d);
}
