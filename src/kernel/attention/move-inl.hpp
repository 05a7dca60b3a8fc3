// Matrices of the client's to panels of attention and back, for one Highway target.

#if defined(MASKWISE_KERNEL_ATTENTION_MOVE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_MOVE_INL
#undef MASKWISE_KERNEL_ATTENTION_MOVE_INL
#else
#define MASKWISE_KERNEL_ATTENTION_MOVE_INL
#endif

#include "kernel/attention/contract.hpp"
#include "kernel/rows/rows-inl.hpp"
#include "kernel/select/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// Element c of row r becomes element r of row c.
template <std::size_t Width>
HWY_ATTR HWY_INLINE void transpose_singly(const std::byte* from, std::int64_t from_bytes,
                                          std::int64_t row_count, std::int64_t columns,
                                          std::byte* to, std::int64_t to_bytes) {
    constexpr std::int64_t width = Width;
    for (std::int64_t c = 0; c < columns; ++c)
        for (std::int64_t r = 0; r < row_count; ++r)
            std::memcpy(to + c * to_bytes + r * width, from + r * from_bytes + c * width, Width);
}

// In squares of N; what is left on the right and below is moved element by element.
template <std::size_t Width>
HWY_ATTR HWY_INLINE void transpose_matrix(const std::byte* from, std::int64_t from_bytes,
                                          std::int64_t row_count, std::int64_t columns,
                                          std::byte* to, std::int64_t to_bytes) {
    std::int64_t whole_rows = 0, whole_columns = 0;
    constexpr std::int64_t width = Width;
#if HWY_TARGET != HWY_SCALAR
    constexpr std::size_t side = 16 / Width;
    constexpr std::int64_t n = side;
    constexpr std::int64_t most_bytes = std::numeric_limits<std::int32_t>::max() / n;
    if (std::max(std::abs(from_bytes), std::abs(to_bytes)) > most_bytes)
        return transpose_singly<Width>(from, from_bytes, row_count, columns, to, to_bytes);
    std::int32_t offsets[side], places[side];
    for (std::int64_t i = 0; i < n; ++i) {
        offsets[i] = static_cast<std::int32_t>(i * from_bytes);
        places[i] = static_cast<std::int32_t>(i * to_bytes);
    }
    whole_rows = row_count / n * n;
    whole_columns = columns / n * n;
    const auto move = [&](std::int64_t r, std::int64_t c) HWY_ATTR {
        square_block<Width, side, 1>::move(from + r * from_bytes + c * width, offsets,
                                           to + c * to_bytes + r * width, places);
    };
    // Along the rows that lie further apart: those of many heads may all meet in one set of a
    // cache, which holds a few of them only.
    if (std::abs(to_bytes) > std::abs(from_bytes))
        for (std::int64_t c = 0; c < whole_columns; c += n)
            for (std::int64_t r = 0; r < whole_rows; r += n) move(r, c);
    else
        for (std::int64_t r = 0; r < whole_rows; r += n)
            for (std::int64_t c = 0; c < whole_columns; c += n) move(r, c);
#endif
    transpose_singly<Width>(from + whole_columns * width, from_bytes, whole_rows,
                            columns - whole_columns, to + whole_columns * to_bytes, to_bytes);
    transpose_singly<Width>(from + whole_rows * from_bytes, from_bytes, row_count - whole_rows,
                            columns, to + whole_rows * width, to_bytes);
}

// The first of a vector's elements; the rest of it is 0.
template <row_type Type>
HWY_ATTR HWY_INLINE row_v load_part(const std::byte* from, std::int64_t elems) {
    std::byte near[row_block_elems * sizeof(float)] = {};
    std::memcpy(near, from, static_cast<std::size_t>(elems * bytes_of(Type)));
    return load_elements<Type>(near);
}

// A vector of floats, or the first of one.
HWY_ATTR HWY_INLINE row_v load_floats(const float* from, std::int64_t count) {
    if (count >= row_lanes()) return hn::LoadU(row_d(), from);
    return load_part<row_type::f32>(reinterpret_cast<const std::byte*>(from), count);
}
HWY_ATTR HWY_INLINE void store_floats(row_v values, std::int64_t count, float* to) {
    if (count >= row_lanes()) return hn::StoreU(values, row_d(), to);
    float all[row_block_elems];
    hn::StoreU(values, row_d(), all);
    std::memcpy(to, all, static_cast<std::size_t>(count) * sizeof(float));
}

// Brings lines near that will be read soon; any address.
HWY_INLINE void ask_for_row(const std::byte* first, std::int64_t bytes) {
    constexpr std::int64_t line_bytes = 64;
    for (std::int64_t at = 0; at < bytes; at += line_bytes) __builtin_prefetch(first + at);
}

// Side by side in memory. Less than a vector goes through memory of its own.
template <row_type Type>
HWY_ATTR HWY_INLINE void load_dense_row(const std::byte* from, std::int64_t elems, float* to) {
    const row_d d;
    constexpr std::int64_t width = bytes_of(Type);
    const std::int64_t lanes = row_lanes();
    std::int64_t i = 0;
    for (; i + lanes <= elems; i += lanes)
        hn::StoreU(load_elements<Type>(from + i * width), d, to + i);
    if (i < elems) store_floats(load_part<Type>(from + i * width, elems - i), elems - i, to + i);
}

template <row_type Type>
HWY_ATTR HWY_INLINE void load_row(const std::byte* from, std::int64_t column_bytes,
                                  std::int64_t elems, float* to) {
    constexpr std::int64_t width = bytes_of(Type);
    if (column_bytes == width) return load_dense_row<Type>(from, elems, to);
    std::byte near[row_block_elems * sizeof(float)];
    for (std::int64_t first = 0; first < elems; first += row_block_elems) {
        const std::int64_t count = std::min(row_block_elems, elems - first);
        for (std::int64_t i = 0; i < count; ++i)
            std::memcpy(near + i * width, from + (first + i) * column_bytes,
                        static_cast<std::size_t>(width));
        load_dense_row<Type>(near, count, to + first);
    }
}

HWY_ATTR inline void rows_as_f32(const strided_matrix& from, std::int64_t row_count,
                                 std::int64_t columns, float* to) {
    const std::byte* at = from.first;
    const std::int64_t bytes = row_count > 1 ? columns * bytes_of(from.type) : 0;
    for (std::int64_t r = 0; r < row_count; ++r, at += from.row_bytes, to += columns) {
        ask_for_row(at + row_count * from.row_bytes, bytes); // of the tile behind this one
        if (from.type == row_type::f32)
            load_row<row_type::f32>(at, from.column_bytes, columns, to);
        else if (from.type == row_type::bf16)
            load_row<row_type::bf16>(at, from.column_bytes, columns, to);
        else
            load_row<row_type::f16>(at, from.column_bytes, columns, to);
    }
}

// Row r and the one below it, element by element; the last row may be alone. Stands for any type of
// 16 bits, and any alignment.
HWY_ATTR inline strided_matrix rows_as_pairs(const strided_matrix& from, std::int64_t row_count,
                                             std::int64_t columns, bool asks_ahead, float* to) {
    const std::int64_t pair_bytes = bytes_of(row_type::f32);
    const strided_matrix made{reinterpret_cast<std::byte*>(to), row_type::f32, columns * pair_bytes,
                              pair_bytes};
    const hn::RebindToUnsigned<row_d> du;
    const hn::Rebind<std::uint16_t, row_d> d16;
    const std::int64_t lanes = row_lanes();
    for (std::int64_t r = 0; r < row_count; r += 2, to += columns) {
        const auto* even = reinterpret_cast<const std::uint16_t*>(from.first + r * from.row_bytes);
        const bool is_last = r + 1 == row_count;
        const auto* odd = reinterpret_cast<const std::uint16_t*>(
            from.first + (is_last ? r : r + 1) * from.row_bytes);
        std::int64_t c = 0;
        if (asks_ahead) { // the same rows of the tile behind this one
            const std::int64_t bytes = columns * bytes_of(row_type::bf16);
            const std::byte* const next = from.first + (r + row_count) * from.row_bytes;
            ask_for_row(next, bytes);
            ask_for_row(next + from.row_bytes, bytes);
        }
        for (; c + lanes <= columns; c += lanes) {
            const auto low = hn::PromoteTo(du, hn::LoadU(d16, even + c));
            auto high = hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, odd + c)));
            if (is_last) high = hn::Zero(du);
            hn::StoreU(hn::BitCast(row_d(), hn::Or(low, high)), row_d(), to + c);
        }
        for (; c < columns; ++c) {
            std::uint16_t both[2] = {};
            std::memcpy(&both[0], even + c, sizeof both[0]);
            if (!is_last) std::memcpy(&both[1], odd + c, sizeof both[1]);
            std::memcpy(to + c, both, sizeof both);
        }
    }
    return made;
}

// The same, pairs of a column side by side.
HWY_ATTR inline strided_matrix rows_as_turned_pairs(const strided_matrix& from,
                                                    std::int64_t row_count, std::int64_t columns,
                                                    bool, float* to) {
    const std::int64_t pair_bytes = bytes_of(row_type::f32);
    const std::int64_t column_bytes = (row_count + 1) / 2 * pair_bytes;
    auto* const first = reinterpret_cast<std::byte*>(to);
    if (row_count % 2 != 0)
        for (std::int64_t c = 1; c <= columns; ++c)
            std::memset(first + c * column_bytes - pair_bytes / 2, 0, sizeof(std::uint16_t));
    transpose_matrix<2>(from.first, from.row_bytes, row_count, columns, first, column_bytes);
    return {first, row_type::f32, pair_bytes, column_bytes};
}

constexpr bool is_dense_f32(const strided_matrix& matrix) {
    return matrix.type == row_type::f32 && matrix.column_bytes == bytes_of(row_type::f32);
}

HWY_ATTR HWY_INLINE void multiply_all(float* values, std::int64_t count, float factor) {
    for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
}

template <class Panel>
HWY_ATTR void panel_load(const strided_matrix& from, std::int64_t queries, std::int64_t columns,
                         float factor, float* to, float* work) {
    const std::int64_t panel = Panel::queries();
    const std::int64_t float_bytes = bytes_of(row_type::f32);
    if (queries < panel)
        std::memset(to, 0, static_cast<std::size_t>(columns * panel) * sizeof(float));
    auto* const bytes = reinterpret_cast<std::byte*>(to);
    if (is_dense_f32(from)) {
        transpose_matrix<4>(from.first, from.row_bytes, queries, columns, bytes,
                            panel * float_bytes);
    } else {
        rows_as_f32(from, queries, columns, work);
        transpose_matrix<4>(reinterpret_cast<const std::byte*>(work), columns * float_bytes,
                            queries, columns, bytes, panel * float_bytes);
    }
    if (factor != 1) multiply_all(to, columns * panel, factor);
}

template <class Panel>
HWY_ATTR void panel_load_conds(const strided_matrix& from, std::int64_t queries, std::int64_t keys,
                               std::byte* to) {
    const std::int64_t panel = Panel::queries();
    if (queries < panel) std::memset(to, 0, static_cast<std::size_t>(keys * panel));
    if (from.column_bytes == 1)
        return transpose_matrix<1>(from.first, from.row_bytes, queries, keys, to, panel);
    for (std::int64_t q = 0; q < queries; ++q)
        for (std::int64_t key = 0; key < keys; ++key)
            to[key * panel + q] = from.first[q * from.row_bytes + key * from.column_bytes];
}

// see(vector) of a row's elements as f32. Lanes behind the last element hold `rest`, or where there
// is none an element of the row.
template <class See>
HWY_ATTR HWY_INLINE void see_row(const strided_matrix& from, std::int64_t row, std::int64_t columns,
                                 const float* rest, const See& see) {
    const row_d d;
    const std::int64_t lanes = row_lanes();
    strided_matrix part = from;
    part.first += row * from.row_bytes;
    std::int64_t first = 0;
    if (is_dense_f32(from))
        for (; first + lanes <= columns; first += lanes)
            see(load_elements<row_type::f32>(part.first + first * bytes_of(row_type::f32)));
    part.first += first * from.column_bytes;
    float values[row_block_elems];
    for (; first < columns; first += row_block_elems) {
        const std::int64_t count = std::min(row_block_elems, columns - first);
        rows_as_f32(part, 1, count, values);
        std::fill(values + count, values + row_block_elems, rest == nullptr ? values[0] : *rest);
        for (std::int64_t i = 0; i < count; i += lanes) see(hn::LoadU(d, values + i));
        part.first += row_block_elems * from.column_bytes;
    }
}

HWY_ATTR inline void see_rows(const strided_matrix& from, std::int64_t row_count,
                              std::int64_t columns, number_range& seen) {
    const row_d d;
    auto least = hn::Set(d, seen.least), largest = hn::Set(d, seen.largest), nan = hn::Zero(d);
    for (std::int64_t r = 0; r < row_count; ++r)
        see_row(from, r, columns, nullptr, [&](row_v value) HWY_ATTR {
            least = hn::Min(least, value);
            largest = hn::Max(largest, value);
            nan = hn::IfThenElse(hn::IsNaN(value), value, nan);
        });
    seen = {hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, largest)),
            seen.has_nan || !hn::AllFalse(d, hn::IsNaN(nan))};
}

HWY_ATTR inline float largest_norm(const strided_matrix& from, std::int64_t row_count,
                                   std::int64_t columns) {
    const row_d d;
    constexpr float zero = 0;
    float largest = 0;
    for (std::int64_t r = 0; r < row_count; ++r) {
        auto sum = hn::Zero(d);
        see_row(from, r, columns, &zero,
                [&](row_v value) HWY_ATTR { sum = hn::MulAdd(value, value, sum); });
        const float square = hn::GetLane(hn::SumOfLanes(d, sum));
        if (square != square) return square;
        largest = std::max(largest, square);
    }
    return hn::GetLane(hn::Sqrt(hn::Set(d, largest)));
}

HWY_ATTR inline void panel_add_rows(const std::byte* row, std::int64_t row_bytes,
                                    std::int64_t count, std::int64_t columns, float* sums) {
    const row_d d;
    const std::int64_t lanes = row_lanes();
    for (std::int64_t r = 0; r < count; ++r, row += row_bytes) {
        std::int64_t c = 0;
        for (; c + lanes <= columns; c += lanes) {
            const auto more = load_elements<row_type::f32>(row + c * bytes_of(row_type::f32));
            hn::StoreU(hn::Add(hn::LoadU(d, sums + c), more), d, sums + c);
        }
        for (; c < columns; ++c) {
            float value;
            std::memcpy(&value, row + c * bytes_of(row_type::f32), sizeof value);
            sums[c] += value;
        }
    }
}

// A row of f32 to elements that may stand apart.
HWY_ATTR inline void store_row(const float* row, std::int64_t columns, const strided_matrix& to,
                               std::byte* at) {
    const std::int64_t width = bytes_of(to.type);
    const row_encoding as_is{to.type, 1, 0, false};
    if (to.column_bytes == width) return store_any(row, as_is, at, columns, 1);
    std::byte near[row_block_elems * sizeof(float)];
    for (std::int64_t first = 0; first < columns; first += row_block_elems) {
        const std::int64_t count = std::min(row_block_elems, columns - first);
        store_any(row + first, as_is, near, count, 1);
        for (std::int64_t i = 0; i < count; ++i)
            std::memcpy(at + (first + i) * to.column_bytes, near + i * width,
                        static_cast<std::size_t>(width));
    }
}

HWY_ATTR inline void panel_store(float* values, const float* factors, std::int64_t queries,
                                 std::int64_t columns, const strided_matrix& to, float* work) {
    const row_d d;
    const std::int64_t float_bytes = bytes_of(row_type::f32), panel = 2 * row_lanes();
    for (std::int64_t lane = 0; lane < panel; lane += row_lanes()) {
        const auto factor = hn::LoadU(d, factors + lane), zero = hn::Zero(d);
        for (float* at = values + lane; at < values + columns * panel; at += panel)
            hn::StoreU(
                hn::IfThenElse(hn::Eq(factor, zero), zero, hn::Mul(hn::LoadU(d, at), factor)), d,
                at);
    }
    const auto* const bytes = reinterpret_cast<const std::byte*>(values);
    if (is_dense_f32(to))
        return transpose_matrix<4>(bytes, panel * float_bytes, columns, queries, to.first,
                                   to.row_bytes);
    transpose_matrix<4>(bytes, panel * float_bytes, columns, queries,
                        reinterpret_cast<std::byte*>(work), columns * float_bytes);
    for (std::int64_t q = 0; q < queries; ++q)
        store_row(work + q * columns, columns, to, to.first + q * to.row_bytes);
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_MOVE_INL
