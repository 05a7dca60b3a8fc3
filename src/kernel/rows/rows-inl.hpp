// Row arithmetic for one Highway target.

#if defined(MASKWISE_KERNEL_ROWS_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ROWS_ROWS_INL
#undef MASKWISE_KERNEL_ROWS_ROWS_INL
#else
#define MASKWISE_KERNEL_ROWS_ROWS_INL
#endif

#include "kernel/rows/steps-inl.hpp"

#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

constexpr float row_minus_infinity = -std::numeric_limits<float>::infinity();

HWY_ATTR HWY_INLINE void store_block(const row_columns& at, float* buffer, const row_block& block) {
    buffer += at.first;
    for_each_vector(
        [&](int i) MASKWISE_LAMBDA_ATTR { hn::StoreU(block[i], row_d(), buffer + at.from[i]); });
}

HWY_ATTR HWY_INLINE row_v largest_of(const row_block& block) {
    return hn::Max(hn::Max(block[0], block[1]), hn::Max(block[2], block[3]));
}

// Two copies of act: processors prefetch by the address of the load, and an operand that shares its
// loads with another 64 MB away was read at a third of the speed.
HWY_ATTR HWY_INLINE void make_block(const row_piece& piece, const row_columns& at,
                                    row_block& block) {
    load_any(piece.from, at, block);
    for (std::size_t i = 0; i < piece.action_count; ++i) {
        act(piece.actions[i], at, block);
        if (++i < piece.action_count) act(piece.actions[i], at, block);
    }
}

// One block into `buffer`, which stands for column 0. Returns the maxima so far.
HWY_ATTR HWY_INLINE row_v run_block(const row_piece& piece, const row_columns& at, float* buffer,
                                    row_v maxima) {
    row_block block;
    make_block(piece, at, block);
    store_block(at, buffer, block);
    return hn::Max(maxima, largest_of(block));
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
    row_block block;
    make_block(piece, at.from, block);
    maxima = hn::Max(maxima, largest_of(block));
    for_each_vector([&](int i) MASKWISE_LAMBDA_ATTR {
        if (i == 3 || at.short_from <= i) block[i] = moved_to_front(block[i], at.moved);
    });
    store_block(columns_from(at.from.first), buffer, block);
    return maxima;
}

// Less than a vector goes through arrays on the stack: the client's memory ends with the row.
class row_rest {
public:
    explicit row_rest(const row_piece& piece) : whole_(piece) {
        piece_.from = copy(piece.from);
        for (std::size_t i = 0; i < piece.action_count; ++i) {
            row_action& action = actions_[i] = piece.actions[i];
            action.side = copy(action.side);
            action.cond = copy(action.cond, 1);
        }
        piece_.actions = actions_;
        piece_.action_count = piece.action_count;
        piece_.elems = piece.elems;
    }

    const row_piece& piece() const { return piece_; }

private:
    row_side copy(const row_side& side) {
        return {side.type, copy(side.at, bytes_of(side.type)), side.value};
    }
    const std::byte* copy(const std::byte* from, std::int64_t width) {
        if (from == nullptr) return nullptr;
        std::byte* const to = elements_[used_++];
        std::memset(to, 0, row_block_elems);
        std::memcpy(to, from + whole_.first * width,
                    static_cast<std::size_t>(whole_.elems * width));
        return to;
    }

    const row_piece& whole_;
    row_piece piece_;
    std::size_t used_ = 0;
    row_action actions_[max_row_actions];
    std::byte elements_[1 + 2 * max_row_actions][row_block_elems]; // a side and a cond
};

HWY_ATTR inline float run_rest(const row_piece& piece, float* buffer) {
    const row_d d;
    run_block(row_rest(piece).piece(), {}, buffer, hn::Zero(d));
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
        maxima = run_block(piece, columns_from(at), column_0, maxima);
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

// Whether whole vectors may be stored past the caches from there on.
HWY_ATTR HWY_INLINE bool is_aligned(const std::byte* to) {
    const auto vector_bytes = static_cast<std::uintptr_t>(row_lanes()) * sizeof(float);
    return reinterpret_cast<std::uintptr_t>(to) % vector_bytes == 0;
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
    if (Type == row_type::f32 && how.streamed && is_aligned(to))
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

// Past the caches where `streamed`: whole vectors, at their alignment.
template <row_type Type>
HWY_ATTR HWY_INLINE void encode_block(const row_encoding& how, const row_columns& at, std::byte* to,
                                      const row_block& block, bool streamed) {
    constexpr std::int64_t width = bytes_of(Type);
    const element_tag<Type> tag;
    hn::VFromD<element_tag<Type>> v[4];
    for_each_vector([&](int i) MASKWISE_LAMBDA_ATTR {
        row_v value = block[i];
        if constexpr (width == 1)
            value =
                hn::MulAdd(value, hn::Set(row_d(), how.factor), hn::Set(row_d(), how.zero_point));
        v[i] = elements_of<Type>(value);
    });
    auto* const out = reinterpret_cast<row_element<Type>*>(to) + at.first;
    if (!streamed) {
        for_each_vector([&](int i)
                            MASKWISE_LAMBDA_ATTR { hn::StoreU(v[i], tag, out + at.from[i]); });
        return;
    }
    if constexpr (width == 4) {
        for_each_vector([&](int i)
                            MASKWISE_LAMBDA_ATTR { hn::Stream(v[i], tag, out + at.from[i]); });
    }
#if HWY_TARGET != HWY_SCALAR // which has no Combine
    const hn::Twice<element_tag<Type>> two;
    if constexpr (width == 2) {
        hn::Stream(hn::Combine(two, v[1], v[0]), two, out + at.from[0]);
        hn::Stream(hn::Combine(two, v[3], v[2]), two, out + at.from[2]);
    }
    if constexpr (width == 1) {
        const hn::Twice<decltype(two)> four;
        hn::Stream(hn::Combine(four, hn::Combine(two, v[3], v[2]), hn::Combine(two, v[1], v[0])),
                   four, out + at.from[0]);
    }
#endif
}

HWY_ATTR HWY_INLINE void write_block(const row_encoding& how, const row_columns& at, std::byte* to,
                                     const row_block& block, bool streamed = false) {
    switch (how.type) {
    case row_type::f32:
        return encode_block<row_type::f32>(how, at, to, block, streamed);
    case row_type::bf16:
        return encode_block<row_type::bf16>(how, at, to, block, streamed);
    case row_type::f16:
        return encode_block<row_type::f16>(how, at, to, block, streamed);
    case row_type::i8:
        return encode_block<row_type::i8>(how, at, to, block, streamed);
    case row_type::u8:
        return encode_block<row_type::u8>(how, at, to, block, streamed);
    }
}

// The last block overlaps the one before it, so it is made first and written last.
HWY_ATTR inline void row_write(const row_piece& piece, const row_encoding& how, std::byte* to) {
    const std::int64_t lanes = row_lanes(), block = 4 * lanes;
    const std::int64_t end = piece.first + piece.elems, rest = piece.elems % block;
    if (piece.elems < lanes) {
        float buffer[row_block_elems];
        run_rest(piece, buffer);
        return store_any(buffer, how, to + piece.first * bytes_of(how.type), piece.elems, 1);
    }
    const bool streams = how.streamed && HWY_TARGET != HWY_SCALAR &&
                         is_aligned(to + piece.first * bytes_of(how.type));
    const row_columns at_end = end_of_row(end - rest, rest == 0 ? block : rest).from;
    const row_v zero = hn::Zero(row_d());
    row_block last{zero, zero, zero, zero};
    if (rest != 0) make_block(piece, at_end, last);
    for (std::int64_t at = piece.first; at + block <= end; at += block) {
        const row_columns columns = columns_from(at);
        row_block made;
        make_block(piece, columns, made);
        write_block(how, columns, to, made, streams);
    }
    if (rest != 0) write_block(how, at_end, to, last);
}

// Of NaN hn::Log makes a number.
HWY_ATTR inline float row_log(float value) {
    if (value != value) return value;
    return hn::GetLane(hn::Log(row_d(), hn::Set(row_d(), value)));
}

constexpr row_kernels row_operations{row_write, row_run, row_exp_sum, row_store, row_fill, row_log};

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ROWS_ROWS_INL
