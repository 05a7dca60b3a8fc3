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

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

HWY_ATTR HWY_INLINE void store_block(const row_columns& columns, float* buffer,
                                     const row_block& block) {
    buffer += columns.first;
    for_each_vector([&](int i) MASKWISE_LAMBDA_ATTR {
        hn::StoreU(block[i], f32_tag(), buffer + columns.offsets[i]);
    });
}

HWY_ATTR HWY_INLINE vec_f32 max_of_block(const row_block& block) {
    return hn::Max(hn::Max(block[0], block[1]), hn::Max(block[2], block[3]));
}

// Two copies of apply_step, because CPUs prefetch by the address of the load instruction. Operands
// that share a load instruction may be read at a fraction of the speed.
HWY_ATTR HWY_INLINE void compute_block(const row_piece& piece, const row_columns& columns,
                                       row_block& block) {
    load_side(piece.source, columns, block);
    for (std::size_t i = 0; i < piece.action_count; ++i) {
        apply_step(piece.actions[i], columns, block);
        if (++i < piece.action_count) apply_step(piece.actions[i], columns, block);
    }
}

// Computes one block into `buffer`; buffer[0] is column 0. Returns the updated maxima.
HWY_ATTR HWY_INLINE vec_f32 run_block(const row_piece& piece, const row_columns& columns,
                                      float* buffer, vec_f32 maxima) {
    row_block block;
    compute_block(piece, columns, block);
    store_block(columns, buffer, block);
    return hn::Max(maxima, max_of_block(block));
}

HWY_ATTR HWY_INLINE vec_f32 rotate_left(vec_f32 value, std::int64_t lanes) {
    const f32_tag d;
    const hn::RebindToSigned<f32_tag> di;
    const auto index = hn::Add(hn::Iota(di, 0), hn::Set(di, static_cast<std::int32_t>(lanes)));
    const auto wrapped = hn::And(index, hn::Set(di, static_cast<std::int32_t>(f32_lanes() - 1)));
    return hn::TableLookupLanes(value, hn::IndicesFromVec(d, wrapped));
}

HWY_ATTR HWY_INLINE vec_f32 run_last_block(const row_piece& piece, const row_end& end,
                                           float* buffer, vec_f32 maxima) {
    row_block block;
    compute_block(piece, end.columns, block);
    maxima = hn::Max(maxima, max_of_block(block));
    for_each_vector([&](int i) MASKWISE_LAMBDA_ATTR {
        if (i == 3 || end.first_short <= i) block[i] = rotate_left(block[i], end.shift);
    });
    store_block(columns_from(end.columns.first), buffer, block);
    return maxima;
}

// A stack copy of a piece that is shorter than a vector. Loading a full vector would read past the
// end of client memory.
class padded_row {
public:
    explicit padded_row(const row_piece& piece) : whole_(piece) {
        piece_.source = copy(piece.source);
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
        return {side.type, copy(side.data, bytes_of(side.type)), side.value};
    }
    const std::byte* copy(const std::byte* src, std::int64_t width) {
        if (src == nullptr) return nullptr;
        std::byte* const dst = elements_[used_++];
        std::memset(dst, 0, row_block_elems);
        std::memcpy(dst, src + whole_.first * width,
                    static_cast<std::size_t>(whole_.elems * width));
        return dst;
    }

    const row_piece& whole_;
    row_piece piece_;
    std::size_t used_ = 0;
    row_action actions_[max_row_actions];
    std::byte elements_[1 + 2 * max_row_actions][row_block_elems]; // the source, sides and conds
};

HWY_ATTR inline float run_short_row(const row_piece& piece, float* buffer) {
    const f32_tag d;
    run_block(padded_row(piece).piece(), {}, buffer, hn::Zero(d));
    const auto valid = hn::FirstN(d, static_cast<std::size_t>(piece.elems));
    const auto values = hn::IfThenElse(valid, hn::LoadU(d, buffer), hn::Set(d, minus_infinity));
    return hn::GetLane(hn::MaxOfLanes(d, values));
}

HWY_ATTR inline float row_run(const row_piece& piece, float* buffer) {
    const f32_tag d;
    const std::int64_t lanes = f32_lanes();
    if (piece.elems < lanes) return run_short_row(piece, buffer);
    auto maxima = hn::Set(d, minus_infinity);
    const std::int64_t end = piece.first + piece.elems;
    float* const column_0 = buffer - piece.first;
    std::int64_t column = piece.first;
    for (; column + 4 * lanes <= end; column += 4 * lanes)
        maxima = run_block(piece, columns_from(column), column_0, maxima);
    if (column < end)
        maxima = run_last_block(piece, end_of_row(column, end - column), column_0, maxima);
    return hn::GetLane(hn::MaxOfLanes(d, maxima));
}

// Lanes past the end of the row count as -infinity.
HWY_ATTR HWY_INLINE vec_f32 exponentials(float* values, std::int64_t count, vec_f32 shifts) {
    const f32_tag d;
    auto value = hn::LoadU(d, values);
    if (count < f32_lanes())
        value = hn::IfThenElse(
            hn::FirstN(d, static_cast<std::size_t>(std::max<std::int64_t>(count, 0))), value,
            hn::Set(d, minus_infinity));
    const auto result = exp_below_one(hn::Sub(value, shifts));
    hn::StoreU(result, d, values);
    return result;
}

HWY_ATTR inline float row_exp_sum(float* buffer, float shift, std::int64_t elems,
                                  const std::byte* next) {
    const f32_tag d;
    const std::int64_t lanes = f32_lanes();
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

HWY_ATTR HWY_INLINE bool is_aligned(const std::byte* dst) {
    const auto vector_bytes = static_cast<std::uintptr_t>(f32_lanes()) * sizeof(float);
    return reinterpret_cast<std::uintptr_t>(dst) % vector_bytes == 0;
}

// Encodes and stores `elems` elements; element i is buffer[i * step]. A step of 0 stores the
// first vector repeatedly. Without masked stores, the last vector overlaps the vector before it.
// The last load then spans two recent stores of exp_sum and stalls.
template <elem_type Type>
HWY_ATTR HWY_INLINE void store_as(const float* buffer, const row_encoding& encoding, std::byte* dst,
                                  std::int64_t elems, std::int64_t step) {
    const f32_tag d;
    const std::int64_t lanes = f32_lanes(), width = bytes_of(Type);
    const auto factor = hn::Set(d, encoding.factor), zero = hn::Set(d, encoding.zero_point);
    // Multiplying by 1 would quiet a signalling NaN.
    const bool is_copy = Type == elem_type::f32 && encoding.factor == 1.0F;
    const auto encoded = [&](std::int64_t i) HWY_ATTR {
        const auto value = hn::LoadU(d, buffer + i * step);
        if constexpr (bytes_of(Type) == 1) return hn::MulAdd(value, factor, zero);
        return is_copy ? value : hn::Mul(value, factor);
    };
    if (elems < lanes) {
        std::byte rest[row_block_elems];
        store_elements<Type>(encoded(0), rest);
        std::memcpy(dst, rest, static_cast<std::size_t>(elems * width));
        return;
    }
    std::int64_t i = 0;
    if (Type == elem_type::f32 && encoding.streamed && is_aligned(dst))
        for (; i + lanes <= elems; i += lanes)
            hn::Stream(encoded(i), d, reinterpret_cast<float*>(dst + i * width));
    for (; i + lanes <= elems; i += lanes) store_elements<Type>(encoded(i), dst + i * width);
    if (i == elems) return;
    if constexpr (Type == elem_type::f32 && HWY_TARGET == HWY_AVX3)
        hn::BlendedStore(encoded(i), hn::FirstN(d, static_cast<std::size_t>(elems - i)), d,
                         reinterpret_cast<float*>(dst + i * width));
    else
        store_elements<Type>(encoded(elems - lanes), dst + (elems - lanes) * width);
}

HWY_ATTR inline void store_any(const float* buffer, const row_encoding& encoding, std::byte* dst,
                               std::int64_t elems, std::int64_t step) {
    switch (encoding.type) {
    case elem_type::f32:
        return store_as<elem_type::f32>(buffer, encoding, dst, elems, step);
    case elem_type::bf16:
        return store_as<elem_type::bf16>(buffer, encoding, dst, elems, step);
    case elem_type::f16:
        return store_as<elem_type::f16>(buffer, encoding, dst, elems, step);
    case elem_type::i8:
        return store_as<elem_type::i8>(buffer, encoding, dst, elems, step);
    case elem_type::u8:
        return store_as<elem_type::u8>(buffer, encoding, dst, elems, step);
    }
}

HWY_ATTR inline void row_store(const float* buffer, const row_encoding& encoding, std::byte* dst,
                               std::int64_t elems) {
    if (encoding.type != elem_type::f32 || encoding.factor != 1.0F || encoding.streamed)
        store_any(buffer, encoding, dst, elems, 1);
    else
        std::memcpy(dst, buffer, static_cast<std::size_t>(elems) * sizeof(float));
}

HWY_ATTR inline void row_fill(float value, const row_encoding& encoding, std::byte* dst,
                              std::int64_t elems) {
    float values[row_block_elems];
    hn::StoreU(hn::Set(f32_tag(), value), f32_tag(), values);
    store_any(values, encoding, dst, elems, 0);
}

// If `streamed`, `dst` must be aligned to the block's vectors.
template <elem_type Type>
HWY_ATTR HWY_INLINE void encode_block(const row_encoding& encoding, const row_columns& columns,
                                      std::byte* dst, const row_block& block, bool streamed) {
    constexpr std::int64_t width = bytes_of(Type);
    const element_tag<Type> tag;
    hn::VFromD<element_tag<Type>> v[4];
    for_each_vector([&](int i) MASKWISE_LAMBDA_ATTR {
        vec_f32 value = block[i];
        if constexpr (width == 1)
            value = hn::MulAdd(value, hn::Set(f32_tag(), encoding.factor),
                               hn::Set(f32_tag(), encoding.zero_point));
        v[i] = elements_of<Type>(value);
    });
    auto* const out = reinterpret_cast<row_element<Type>*>(dst) + columns.first;
    if (!streamed) {
        for_each_vector(
            [&](int i) MASKWISE_LAMBDA_ATTR { hn::StoreU(v[i], tag, out + columns.offsets[i]); });
        return;
    }
    if constexpr (width == 4) {
        for_each_vector(
            [&](int i) MASKWISE_LAMBDA_ATTR { hn::Stream(v[i], tag, out + columns.offsets[i]); });
    }
#if HWY_TARGET != HWY_SCALAR // the scalar target has no Combine
    const hn::Twice<element_tag<Type>> two;
    if constexpr (width == 2) {
        hn::Stream(hn::Combine(two, v[1], v[0]), two, out + columns.offsets[0]);
        hn::Stream(hn::Combine(two, v[3], v[2]), two, out + columns.offsets[2]);
    }
    if constexpr (width == 1) {
        const hn::Twice<decltype(two)> four;
        hn::Stream(hn::Combine(four, hn::Combine(two, v[3], v[2]), hn::Combine(two, v[1], v[0])),
                   four, out + columns.offsets[0]);
    }
#endif
}

HWY_ATTR HWY_INLINE void write_block(const row_encoding& encoding, const row_columns& columns,
                                     std::byte* dst, const row_block& block,
                                     bool streamed = false) {
    switch (encoding.type) {
    case elem_type::f32:
        return encode_block<elem_type::f32>(encoding, columns, dst, block, streamed);
    case elem_type::bf16:
        return encode_block<elem_type::bf16>(encoding, columns, dst, block, streamed);
    case elem_type::f16:
        return encode_block<elem_type::f16>(encoding, columns, dst, block, streamed);
    case elem_type::i8:
        return encode_block<elem_type::i8>(encoding, columns, dst, block, streamed);
    case elem_type::u8:
        return encode_block<elem_type::u8>(encoding, columns, dst, block, streamed);
    }
}

// The last block overlaps the block before it. The last block is computed first and written last,
// because dst may be the source.
HWY_ATTR inline void row_write(const row_piece& piece, const row_encoding& encoding,
                               std::byte* dst) {
    const std::int64_t lanes = f32_lanes(), block = 4 * lanes;
    const std::int64_t end = piece.first + piece.elems, rest = piece.elems % block;
    if (piece.elems < lanes) {
        float buffer[row_block_elems];
        run_short_row(piece, buffer);
        return store_any(buffer, encoding, dst + piece.first * bytes_of(encoding.type), piece.elems,
                         1);
    }
    const bool streams = encoding.streamed && HWY_TARGET != HWY_SCALAR &&
                         is_aligned(dst + piece.first * bytes_of(encoding.type));
    const row_columns last_columns = end_of_row(end - rest, rest == 0 ? block : rest).columns;
    const vec_f32 zero = hn::Zero(f32_tag());
    row_block last{zero, zero, zero, zero};
    if (rest != 0) compute_block(piece, last_columns, last);
    for (std::int64_t column = piece.first; column + block <= end; column += block) {
        const row_columns columns = columns_from(column);
        row_block computed;
        compute_block(piece, columns, computed);
        write_block(encoding, columns, dst, computed, streams);
    }
    if (rest != 0) write_block(encoding, last_columns, dst, last);
}

// hn::Log returns a number for NaN.
HWY_ATTR inline float row_log(float value) {
    if (value != value) return value;
    return hn::GetLane(hn::Log(f32_tag(), hn::Set(f32_tag(), value)));
}

constexpr row_kernels row_operations{row_write, row_run, row_exp_sum, row_store, row_fill, row_log};

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ROWS_ROWS_INL
