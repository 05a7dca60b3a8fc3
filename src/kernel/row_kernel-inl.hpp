// Row arithmetic for one Highway target; included once a target by kernels.cpp.

#if defined(MASKWISE_KERNEL_ROW_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ROW_INL
#undef MASKWISE_KERNEL_ROW_INL
#else
#define MASKWISE_KERNEL_ROW_INL
#endif

#include "hwy/contrib/math/math-inl.h"
#include "kernel/row_elements-inl.hpp"

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
    if constexpr (Operator == row_operator::replace) return side;
}

// The columns of a block's four vectors: that of the first and how far behind it the others are,
// constants inside a row, so that addresses are one register and a number. At the end of a row they
// overlap: nothing behind it is read, and making an element twice does no harm.
struct row_columns {
    std::int64_t first, a, b, c, d;
};

// Where a block at the end of a row lies in memory and in the buffer. The buffer has room behind
// the row, so there vectors stand side by side: one that overlaps another would be read back from
// two stores at once, which waits until both have left the core. Vectors from number `short_from`
// on are moved to the front by `moved` elements.
struct row_end {
    row_columns from, to;
    std::int64_t short_from, moved;
};

HWY_ATTR HWY_INLINE row_end end_of_row(std::int64_t first, std::int64_t elems) {
    const std::int64_t lanes = row_lanes(), last = (elems - 1) / lanes, rest = elems - lanes;
    const auto load = [&](std::int64_t i) { return i < last ? i * lanes : rest; };
    const auto store = [&](std::int64_t i) { return std::min(i, last) * lanes; };
    return {{first, load(0), load(1), load(2), load(3)},
            {first, store(0), store(1), store(2), store(3)},
            last,
            last * lanes - rest};
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

HWY_ATTR HWY_INLINE void load_any(const std::byte* from, row_type type, float value,
                                  const row_columns& at, row_v& a, row_v& b, row_v& c, row_v& d) {
    if (from == nullptr)
        a = b = c = d = hn::Set(row_d(), value);
    else if (type == row_type::f32)
        load_block<row_type::f32>(from, at, a, b, c, d);
    else if (type == row_type::bf16)
        load_block<row_type::bf16>(from, at, a, b, c, d);
    else
        load_block<row_type::f16>(from, at, a, b, c, d);
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

HWY_ATTR HWY_INLINE void select_block(const std::byte* cond, bool keep_true, const row_columns& at,
                                      row_v& a, row_v& b, row_v& c, row_v& d, row_v side_a,
                                      row_v side_b, row_v side_c, row_v side_d) {
    cond += at.first;
    if (keep_true) {
        a = selected(cond + at.a, a, side_a);
        b = selected(cond + at.b, b, side_b);
        c = selected(cond + at.c, c, side_c);
        d = selected(cond + at.d, d, side_d);
    } else {
        a = selected(cond + at.a, side_a, a);
        b = selected(cond + at.b, side_b, b);
        c = selected(cond + at.c, side_c, c);
        d = selected(cond + at.d, side_d, d);
    }
}

HWY_ATTR HWY_INLINE row_v rounded_to_f16(row_v row) {
    if constexpr (has_f16_conversion)
        return hn::PromoteTo(row_d(), hn::DemoteTo(hn::Rebind<hwy::float16_t, row_d>(), row));
    else
        return from_f16_bits(f16_bits(row));
}

// Highway's is for numbers up to 104, where it is infinity already, and takes NaN for 0.
HWY_ATTR HWY_INLINE row_v exp_of_any(row_v x) {
    const row_d d;
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, hn::Min(x, hn::Set(d, 104.0F))));
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE row_v changed(row_v row) {
    const row_d d;
    if constexpr (Operator == row_operator::exp) return exp_of_any(row);
    if constexpr (Operator == row_operator::tanh) return hn::Tanh(d, row);
    if constexpr (Operator == row_operator::round_bf16)
        return hn::BitCast(d, hn::ShiftLeft<16>(bf16_bits(row)));
    if constexpr (Operator == row_operator::round_f16) return rounded_to_f16(row);
}

template <row_operator Operator>
HWY_ATTR HWY_INLINE void change_block(row_v& a, row_v& b, row_v& c, row_v& d) {
    a = changed<Operator>(a);
    b = changed<Operator>(b);
    c = changed<Operator>(c);
    d = changed<Operator>(d);
}

HWY_ATTR HWY_INLINE void unary_block(row_operator op, row_v& a, row_v& b, row_v& c, row_v& d) {
    switch (op) {
#define MASKWISE_ROW_COMBINE(name)
#define MASKWISE_ROW_SELECT(name)
#define MASKWISE_ROW_CHANGE(name)                                                                  \
    case row_operator::name:                                                                       \
        return change_block<row_operator::name>(a, b, c, d);
#include "kernel/row_operators.inc"
#undef MASKWISE_ROW_CHANGE
#undef MASKWISE_ROW_SELECT
#undef MASKWISE_ROW_COMBINE
    default:
        __builtin_unreachable();
    }
}

HWY_ATTR HWY_INLINE void act(const row_action& action, const row_columns& at, row_v& a, row_v& b,
                             row_v& c, row_v& d) {
    if (!has_side(action.op)) return unary_block(action.op, a, b, c, d);
    row_v side_a, side_b, side_c, side_d;
    load_any(action.side, action.type, action.value, at, side_a, side_b, side_c, side_d);
    switch (action.op) {
#define MASKWISE_ROW_COMBINE(name)                                                                 \
    case row_operator::name:                                                                       \
        return combine_block<row_operator::name>(a, b, c, d, side_a, side_b, side_c, side_d);
#define MASKWISE_ROW_SELECT(name)
#define MASKWISE_ROW_CHANGE(name)
#include "kernel/row_operators.inc"
#undef MASKWISE_ROW_CHANGE
#undef MASKWISE_ROW_SELECT
#undef MASKWISE_ROW_COMBINE
    default:
        return select_block(action.cond, action.op == row_operator::select_kept, at, a, b, c, d,
                            side_a, side_b, side_c, side_d);
    }
}

constexpr float row_minus_infinity = -std::numeric_limits<float>::infinity();

HWY_ATTR HWY_INLINE void store_block(const row_columns& at, float* buffer, row_v a, row_v b,
                                     row_v c, row_v d) {
    const row_d tag;
    buffer += at.first;
    hn::StoreU(a, tag, buffer + at.a);
    hn::StoreU(b, tag, buffer + at.b);
    hn::StoreU(c, tag, buffer + at.c);
    hn::StoreU(d, tag, buffer + at.d);
}

HWY_ATTR HWY_INLINE void make_block(const row_piece& piece, const row_columns& at, row_v& a,
                                    row_v& b, row_v& c, row_v& d) {
    load_any(piece.from, piece.type, piece.value, at, a, b, c, d);
    for (std::size_t i = 0; i < piece.action_count; ++i) act(piece.actions[i], at, a, b, c, d);
}

// One block into `buffer`, which stands for column 0. Returns the maxima so far.
HWY_ATTR HWY_INLINE row_v run_block(const row_piece& piece, const row_columns& at, float* buffer,
                                    row_v maxima) {
    row_v a, b, c, d;
    make_block(piece, at, a, b, c, d);
    store_block(at, buffer, a, b, c, d);
    return hn::Max(maxima, hn::Max(hn::Max(a, b), hn::Max(c, d)));
}

// The last elements of the vector first; what follows them is the vector's beginning.
HWY_ATTR HWY_INLINE row_v moved_to_front(row_v value, std::int64_t moved) {
    const row_d d;
    const hn::RebindToSigned<row_d> di;
    const auto from = hn::Add(hn::Iota(di, 0), hn::Set(di, static_cast<std::int32_t>(moved)));
    const auto wrapped = hn::And(from, hn::Set(di, static_cast<std::int32_t>(row_lanes() - 1)));
    return hn::TableLookupLanes(value, hn::IndicesFromVec(d, wrapped));
}

HWY_ATTR HWY_INLINE row_v run_end(const row_piece& piece, const row_end& at, float* buffer,
                                  row_v maxima) {
    row_v a, b, c, d;
    make_block(piece, at.from, a, b, c, d);
    maxima = hn::Max(maxima, hn::Max(hn::Max(a, b), hn::Max(c, d)));
    if (at.short_from <= 0) a = moved_to_front(a, at.moved);
    if (at.short_from <= 1) b = moved_to_front(b, at.moved);
    if (at.short_from <= 2) c = moved_to_front(c, at.moved);
    store_block(at.to, buffer, a, b, c, moved_to_front(d, at.moved));
    return maxima;
}

// Less than a vector goes through arrays on the stack: the client's memory ends with the row.
struct row_rest {
    row_action actions[max_row_actions];
    std::byte sides[max_row_actions + 1][row_block_elems];
    std::byte conds[max_row_actions][row_block_elems];
};

inline const std::byte* copy_rest(const std::byte* from, const row_piece& piece, std::int64_t width,
                                  std::byte* to) {
    if (from == nullptr) return nullptr;
    std::memset(to, 0, row_block_elems);
    std::memcpy(to, from + piece.first * width, static_cast<std::size_t>(piece.elems * width));
    return to;
}

inline row_piece rest_of(const row_piece& piece, row_rest& rest) {
    row_piece copy = piece;
    copy.from = copy_rest(piece.from, piece, bytes_of(piece.type), rest.sides[max_row_actions]);
    for (std::size_t i = 0; i < piece.action_count; ++i) {
        row_action& action = rest.actions[i] = piece.actions[i];
        action.side = copy_rest(action.side, piece, bytes_of(action.type), rest.sides[i]);
        action.cond = copy_rest(action.cond, piece, 1, rest.conds[i]);
    }
    copy.actions = rest.actions;
    copy.first = 0;
    return copy;
}

HWY_ATTR inline float run_rest(const row_piece& piece, float* buffer) {
    const row_d d;
    row_rest rest;
    run_block(rest_of(piece, rest), {0, 0, 0, 0, 0}, buffer, hn::Zero(d));
    const auto valid = hn::FirstN(d, static_cast<std::size_t>(piece.elems));
    const auto values = hn::IfThenElse(valid, hn::LoadU(d, buffer), hn::Set(d, row_minus_infinity));
    return hn::GetLane(hn::MaxOfLanes(d, values));
}

HWY_ATTR inline float row_run(const row_piece& piece, float* buffer) {
    const row_d d;
    const std::int64_t lanes = row_lanes();
    if (piece.elems < lanes) return run_rest(piece, buffer);
    auto maxima = hn::Set(d, row_minus_infinity);
    const std::int64_t end = piece.first + piece.elems;
    float* const column_0 = buffer - piece.first;
    std::int64_t at = piece.first;
    for (; at + 4 * lanes <= end; at += 4 * lanes)
        maxima = run_block(piece, {at, 0, lanes, 2 * lanes, 3 * lanes}, column_0, maxima);
    if (at < end) maxima = run_end(piece, end_of_row(at, end - at), column_0, maxima);
    return hn::GetLane(hn::MaxOfLanes(d, maxima));
}

// Lanes behind the row's end count as -inf.
HWY_ATTR HWY_INLINE row_v exponentials(float* at, std::int64_t left, row_v shifts) {
    const row_d d;
    auto value = hn::LoadU(d, at);
    if (left < row_lanes())
        value =
            hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(std::max<std::int64_t>(left, 0))),
                           value, hn::Set(d, row_minus_infinity));
    const auto result = exp_below_one(hn::Sub(value, shifts));
    hn::StoreU(result, d, at);
    return result;
}

HWY_ATTR inline float row_exp_sum(float* buffer, float shift, std::int64_t elems,
                                  const std::byte* next) {
    const row_d d;
    const std::int64_t lanes = row_lanes();
    const auto shifts = hn::Set(d, shift);
    auto sum_0 = hn::Zero(d), sum_1 = sum_0;
    std::int64_t i = 0;
    for (; i + 2 * lanes <= elems; i += 2 * lanes) {
        if (next != nullptr) {
            hwy::Prefetch(next + i * 4);
            hwy::Prefetch(next + (i + lanes) * 4);
        }
        sum_0 = hn::Add(sum_0, exponentials(buffer + i, lanes, shifts));
        sum_1 = hn::Add(sum_1, exponentials(buffer + i + lanes, lanes, shifts));
    }
    for (; i < elems; i += lanes)
        sum_0 = hn::Add(sum_0, exponentials(buffer + i, elems - i, shifts));
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum_0, sum_1)));
}

template <row_type Type>
HWY_ATTR HWY_INLINE bool may_stream(const std::byte* to) {
    const auto vector_bytes = static_cast<std::uintptr_t>(row_lanes()) * sizeof(float);
    return Type == row_type::f32 && reinterpret_cast<std::uintptr_t>(to) % vector_bytes == 0;
}

// Vectors from `step` apart in the buffer. The last one overlaps the one before it where there are
// no masks, at the price of reading it back from two stores of exp_sum.
template <row_type Type>
HWY_ATTR HWY_INLINE void store_by(const float* buffer, const row_encoding& how, std::byte* to,
                                  std::int64_t elems, std::int64_t step) {
    const row_d d;
    const std::int64_t lanes = row_lanes(), width = bytes_of(Type);
    const auto factor = hn::Set(d, how.factor), zero = hn::Set(d, how.zero_point);
    // Multiplied by one, a signalling NaN would become quiet.
    const bool as_is = Type == row_type::f32 && how.factor == 1.0F;
    const auto encoded = [&](std::int64_t i) HWY_ATTR {
        const auto value = hn::LoadU(d, buffer + i * step);
        if constexpr (bytes_of(Type) == 1) return hn::MulAdd(value, factor, zero);
        return as_is ? value : hn::Mul(value, factor);
    };
    if (elems < lanes) {
        std::byte rest[row_block_elems];
        store_elements<Type>(encoded(0), rest);
        std::memcpy(to, rest, static_cast<std::size_t>(elems * width));
        return;
    }
    std::int64_t i = 0;
    if (how.streamed && may_stream<Type>(to))
        for (; i + lanes <= elems; i += lanes)
            hn::Stream(encoded(i), d, reinterpret_cast<float*>(to + i * width));
    for (; i + lanes <= elems; i += lanes) store_elements<Type>(encoded(i), to + i * width);
    if (i == elems) return;
    if constexpr (Type == row_type::f32 && HWY_TARGET == HWY_AVX3)
        hn::BlendedStore(encoded(i), hn::FirstN(d, static_cast<std::size_t>(elems - i)), d,
                         reinterpret_cast<float*>(to + i * width));
    else
        store_elements<Type>(encoded(elems - lanes), to + (elems - lanes) * width);
}

HWY_ATTR inline void store_any(const float* buffer, const row_encoding& how, std::byte* to,
                               std::int64_t elems, std::int64_t step) {
    switch (how.type) {
    case row_type::f32:
        return store_by<row_type::f32>(buffer, how, to, elems, step);
    case row_type::bf16:
        return store_by<row_type::bf16>(buffer, how, to, elems, step);
    case row_type::f16:
        return store_by<row_type::f16>(buffer, how, to, elems, step);
    case row_type::i8:
        return store_by<row_type::i8>(buffer, how, to, elems, step);
    case row_type::u8:
        return store_by<row_type::u8>(buffer, how, to, elems, step);
    }
}

HWY_ATTR inline void row_store(const float* buffer, const row_encoding& how, std::byte* to,
                               std::int64_t elems) {
    if (how.type != row_type::f32 || how.factor != 1.0F || how.streamed)
        store_any(buffer, how, to, elems, 1);
    else
        std::memcpy(to, buffer, static_cast<std::size_t>(elems) * sizeof(float));
}

HWY_ATTR inline void row_fill(float value, const row_encoding& how, std::byte* to,
                              std::int64_t elems) {
    float values[row_block_elems];
    hn::StoreU(hn::Set(row_d(), value), row_d(), values);
    store_any(values, how, to, elems, 0);
}

// Of NaN hn::Log makes a number.
HWY_ATTR inline float row_log(float value) {
    if (value != value) return value;
    return hn::GetLane(hn::Log(row_d(), hn::Set(row_d(), value)));
}

constexpr row_kernels rows{row_run, row_exp_sum, row_store, row_fill, row_log};

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();

#endif // per-target include guard
