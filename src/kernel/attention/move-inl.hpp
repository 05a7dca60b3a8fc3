// Loads matrices from client memory, for one Highway target.

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

template <std::size_t Width>
HWY_ATTR HWY_INLINE void transpose_singly(const std::byte* src, std::int64_t src_bytes,
                                          std::int64_t row_count, std::int64_t columns,
                                          std::byte* dst, std::int64_t dst_bytes) {
    constexpr std::int64_t width = Width;
    for (std::int64_t c = 0; c < columns; ++c)
        for (std::int64_t r = 0; r < row_count; ++r)
            std::memcpy(dst + c * dst_bytes + r * width, src + r * src_bytes + c * width, Width);
}

#if HWY_TARGET != HWY_SCALAR

// Transposes blocks of as many rows as a vector of `Blocks` * 16 bytes has elements, from the first
// row on. Returns the number of transposed rows.
template <std::size_t Width, std::size_t Blocks>
HWY_ATTR HWY_INLINE std::int64_t transpose_whole(const std::byte* src, std::int64_t src_bytes,
                                                 std::int64_t row_count, std::int64_t columns,
                                                 std::byte* dst, std::int64_t dst_bytes) {
    constexpr std::size_t side = 16 / Width;
    constexpr std::int64_t width = Width, n = side, rows = n * Blocks;
    std::int32_t offsets[side * Blocks], places[side];
    for (std::int64_t i = 0; i < rows; ++i) offsets[i] = static_cast<std::int32_t>(i * src_bytes);
    for (std::int64_t i = 0; i < n; ++i) places[i] = static_cast<std::int32_t>(i * dst_bytes);
    const std::int64_t whole_rows = row_count / rows * rows;
    const auto move = [&](std::int64_t r, std::int64_t c) HWY_ATTR {
        square_block<Width, side, Blocks>::move(src + r * src_bytes + c * width, offsets,
                                                dst + c * dst_bytes + r * width, places);
    };
    // The inner loop walks along a row of the matrix with the larger row stride. With many heads,
    // the rows of that matrix may all map to one cache set, which holds only a few lines.
    if (std::abs(dst_bytes) > std::abs(src_bytes))
        for (std::int64_t c = 0; c < columns; c += n)
            for (std::int64_t r = 0; r < whole_rows; r += rows) move(r, c);
    else
        for (std::int64_t r = 0; r < whole_rows; r += rows)
            for (std::int64_t c = 0; c < columns; c += n) move(r, c);
    return whole_rows;
}

#endif

// Transposes blocks, then the tail columns and rows one element at a time.
template <std::size_t Width>
HWY_ATTR HWY_INLINE void transpose_matrix(const std::byte* src, std::int64_t src_bytes,
                                          std::int64_t row_count, std::int64_t columns,
                                          std::byte* dst, std::int64_t dst_bytes) {
    std::int64_t whole_rows = 0, whole_columns = 0;
    constexpr std::int64_t width = Width;
#if HWY_TARGET != HWY_SCALAR
    constexpr std::int64_t side = 16 / Width;
    constexpr std::size_t blocks = hn::MaxLanes(f32_tag()) / 4;
    constexpr std::int64_t most_bytes =
        std::numeric_limits<std::int32_t>::max() / (side * std::int64_t{blocks});
    if (std::max(std::abs(src_bytes), std::abs(dst_bytes)) > most_bytes)
        return transpose_singly<Width>(src, src_bytes, row_count, columns, dst, dst_bytes);
    whole_columns = columns / side * side;
    whole_rows =
        transpose_whole<Width, blocks>(src, src_bytes, row_count, whole_columns, dst, dst_bytes);
    if (blocks > 1)
        whole_rows += transpose_whole<Width, 1>(src + whole_rows * src_bytes, src_bytes,
                                                row_count - whole_rows, whole_columns,
                                                dst + whole_rows * width, dst_bytes);
#endif
    transpose_singly<Width>(src + whole_columns * width, src_bytes, whole_rows,
                            columns - whole_columns, dst + whole_columns * dst_bytes, dst_bytes);
    transpose_singly<Width>(src + whole_rows * src_bytes, src_bytes, row_count - whole_rows,
                            columns, dst + whole_rows * width, dst_bytes);
}

// Loads the first `elems` elements of a vector; the other lanes are 0.
template <elem_type Type>
HWY_ATTR HWY_INLINE vec_f32 load_part(const std::byte* src, std::int64_t elems) {
    std::byte buffer[row_block_elems * sizeof(float)] = {};
    std::memcpy(buffer, src, static_cast<std::size_t>(elems * bytes_of(Type)));
    return load_elements<Type>(buffer);
}

// Loads or stores a vector, or its first `count` elements.
HWY_ATTR HWY_INLINE vec_f32 load_floats(const float* src, std::int64_t count) {
    if (count >= f32_lanes()) return hn::LoadU(f32_tag(), src);
    return load_part<elem_type::f32>(reinterpret_cast<const std::byte*>(src), count);
}
HWY_ATTR HWY_INLINE void store_floats(vec_f32 values, std::int64_t count, float* dst) {
    if (count >= f32_lanes()) return hn::StoreU(values, f32_tag(), dst);
    float buffer[row_block_elems];
    hn::StoreU(values, f32_tag(), buffer);
    std::memcpy(dst, buffer, static_cast<std::size_t>(count) * sizeof(float));
}

// Prefetches the lines of a row. Any address is safe.
HWY_INLINE void prefetch_row(const std::byte* first, std::int64_t bytes) {
    constexpr std::int64_t line_bytes = 64;
    for (std::int64_t i = 0; i < bytes; i += line_bytes) __builtin_prefetch(first + i);
}

HWY_INLINE void prefetch_rows(const std::byte* first, std::int64_t row_bytes, std::int64_t count,
                              std::int64_t bytes) {
    for (std::int64_t r = 0; r < count; ++r) prefetch_row(first + r * row_bytes, bytes);
}

// Loads contiguous elements. Reads no byte past the last element.
template <elem_type Type>
HWY_ATTR HWY_INLINE void load_dense_row(const std::byte* src, std::int64_t elems, float* dst) {
    const f32_tag d;
    constexpr std::int64_t width = bytes_of(Type);
    const std::int64_t lanes = f32_lanes();
    std::int64_t i = 0;
    for (; i + lanes <= elems; i += lanes)
        hn::StoreU(load_elements<Type>(src + i * width), d, dst + i);
    if (i < elems) store_floats(load_part<Type>(src + i * width, elems - i), elems - i, dst + i);
}

template <elem_type Type>
HWY_ATTR HWY_INLINE void load_row(const std::byte* src, std::int64_t column_bytes,
                                  std::int64_t elems, float* dst) {
    constexpr std::int64_t width = bytes_of(Type);
    if (column_bytes == width) return load_dense_row<Type>(src, elems, dst);
    std::byte buffer[row_block_elems * sizeof(float)];
    for (std::int64_t first = 0; first < elems; first += row_block_elems) {
        const std::int64_t count = std::min(row_block_elems, elems - first);
        for (std::int64_t i = 0; i < count; ++i)
            std::memcpy(buffer + i * width, src + (first + i) * column_bytes,
                        static_cast<std::size_t>(width));
        load_dense_row<Type>(buffer, count, dst + first);
    }
}

// Converts rows to f32. For each row, prefetches `next_bytes` bytes, beginning `ahead_bytes` past
// the row's start.
HWY_ATTR HWY_INLINE void convert_rows(const strided_matrix& src, std::int64_t row_count,
                                      std::int64_t columns, std::int64_t ahead_bytes,
                                      std::int64_t next_bytes, float* dst) {
    const std::byte* row = src.first;
    for (std::int64_t r = 0; r < row_count; ++r, row += src.row_bytes, dst += columns) {
        prefetch_row(row + ahead_bytes, next_bytes);
        if (src.type == elem_type::f32)
            load_row<elem_type::f32>(row, src.column_bytes, columns, dst);
        else if (src.type == elem_type::bf16)
            load_row<elem_type::bf16>(row, src.column_bytes, columns, dst);
        else
            load_row<elem_type::f16>(row, src.column_bytes, columns, dst);
    }
}

// If row_count > 1, `src` is a tile of keys or values: prefetches the next tile.
HWY_ATTR inline void rows_as_f32(const strided_matrix& src, std::int64_t row_count,
                                 std::int64_t columns, float* dst) {
    const std::int64_t next_bytes = row_count > 1 ? columns * bytes_of(src.type) : 0;
    convert_rows(src, row_count, columns, row_count * src.row_bytes, next_bytes, dst);
}

// Interleaves rows r and r + 1; an odd last row is paired with zeros. Accepts any 16-bit type and
// alignment.
HWY_ATTR inline strided_matrix rows_as_pairs(const strided_matrix& src, std::int64_t row_count,
                                             std::int64_t columns, bool prefetches, float* dst) {
    const std::int64_t pair_bytes = bytes_of(elem_type::f32);
    const strided_matrix pairs{reinterpret_cast<std::byte*>(dst), elem_type::f32,
                               columns * pair_bytes, pair_bytes};
    const hn::RebindToUnsigned<f32_tag> du;
    const hn::Rebind<std::uint16_t, f32_tag> d16;
    const std::int64_t lanes = f32_lanes();
    for (std::int64_t r = 0; r < row_count; r += 2, dst += columns) {
        const auto* even = reinterpret_cast<const std::uint16_t*>(src.first + r * src.row_bytes);
        const bool is_last = r + 1 == row_count;
        const auto* odd = reinterpret_cast<const std::uint16_t*>(src.first + (is_last ? r : r + 1) *
                                                                                 src.row_bytes);
        std::int64_t c = 0;
        if (prefetches) { // the same rows of the next tile
            const std::int64_t bytes = columns * bytes_of(elem_type::bf16);
            const std::byte* const next = src.first + (r + row_count) * src.row_bytes;
            prefetch_row(next, bytes);
            prefetch_row(next + src.row_bytes, bytes);
        }
        for (; c + lanes <= columns; c += lanes) {
            const auto low = hn::PromoteTo(du, hn::LoadU(d16, even + c));
            auto high = hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, odd + c)));
            if (is_last) high = hn::Zero(du);
            hn::StoreU(hn::BitCast(f32_tag(), hn::Or(low, high)), f32_tag(), dst + c);
        }
        for (; c < columns; ++c) {
            std::uint16_t both[2] = {};
            std::memcpy(&both[0], even + c, sizeof both[0]);
            if (!is_last) std::memcpy(&both[1], odd + c, sizeof both[1]);
            std::memcpy(dst + c, both, sizeof both);
        }
    }
    return pairs;
}

// Like rows_as_pairs, but the pairs of a column are contiguous. Does not prefetch.
HWY_ATTR inline strided_matrix rows_as_transposed_pairs(const strided_matrix& src,
                                                        std::int64_t row_count,
                                                        std::int64_t columns, bool, float* dst) {
    const std::int64_t pair_bytes = bytes_of(elem_type::f32);
    const std::int64_t column_bytes = (row_count + 1) / 2 * pair_bytes;
    auto* const first = reinterpret_cast<std::byte*>(dst);
    if (row_count % 2 != 0)
        for (std::int64_t c = 1; c <= columns; ++c)
            std::memset(first + c * column_bytes - pair_bytes / 2, 0, sizeof(std::uint16_t));
    transpose_matrix<2>(src.first, src.row_bytes, row_count, columns, first, column_bytes);
    return {first, elem_type::f32, pair_bytes, column_bytes};
}

constexpr bool is_dense_f32(const strided_matrix& matrix) {
    return matrix.type == elem_type::f32 && matrix.column_bytes == bytes_of(elem_type::f32);
}

HWY_ATTR HWY_INLINE void multiply_all(float* values, std::int64_t count, float factor) {
    for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
}

template <class Panel>
HWY_ATTR void panel_load(const strided_matrix& src, std::int64_t queries, std::int64_t columns,
                         float factor, float* dst, float* scratch) {
    const std::int64_t panel = Panel::queries();
    const std::int64_t float_bytes = bytes_of(elem_type::f32);
    if (queries < panel)
        std::memset(dst, 0, static_cast<std::size_t>(columns * panel) * sizeof(float));
    auto* const bytes = reinterpret_cast<std::byte*>(dst);
    const std::int64_t row_part = columns * bytes_of(src.type);
    if (src.column_bytes == bytes_of(src.type)) // the next tile of a bias is in the same rows
        prefetch_rows(src.first + row_part, src.row_bytes, queries, row_part);
    if (is_dense_f32(src)) {
        transpose_matrix<4>(src.first, src.row_bytes, queries, columns, bytes, panel * float_bytes);
    } else {
        convert_rows(src, queries, columns, 0, 0, scratch);
        transpose_matrix<4>(reinterpret_cast<const std::byte*>(scratch), columns * float_bytes,
                            queries, columns, bytes, panel * float_bytes);
    }
    if (factor != 1) multiply_all(dst, columns * panel, factor);
}

// If a panel is narrower than a vector, one vector holds the results for several keys.
template <class Panel>
HWY_ATTR void panel_write_slopes(const float* positions, const float* slopes, std::int64_t keys,
                                 float* dst) {
    const f32_tag d;
    const std::int64_t panel = Panel::queries(), lanes = f32_lanes();
    const std::int64_t width = std::max(panel, lanes), keys_at_once = width / panel;
    HWY_ALIGN float repeated[2][hn::MaxLanes(f32_tag())];
    if (panel < lanes) {
        for (std::int64_t i = 0; i < lanes; ++i) {
            const std::int64_t key = i / panel;
            repeated[0][i] = positions[i % panel] - static_cast<float>(key);
            repeated[1][i] = slopes[i % panel];
        }
        positions = repeated[0];
        slopes = repeated[1];
    }
    for (std::int64_t lane = 0; lane < width; lane += lanes) {
        const auto position = hn::LoadU(d, positions + lane);
        const auto slope = hn::Neg(hn::LoadU(d, slopes + lane));
        for (std::int64_t key = 0; key < keys; key += keys_at_once) {
            const auto distance = hn::Abs(hn::Sub(position, hn::Set(d, static_cast<float>(key))));
            hn::StoreU(hn::Mul(slope, distance), d, dst + key * panel + lane);
        }
    }
}

template <class Panel>
HWY_ATTR void panel_load_conds(const strided_matrix& src, std::int64_t queries, std::int64_t keys,
                               std::byte* dst) {
    const std::int64_t panel = Panel::queries();
    if (queries < panel) std::memset(dst, 0, static_cast<std::size_t>(keys * panel));
    if (src.column_bytes == 1)
        return transpose_matrix<1>(src.first, src.row_bytes, queries, keys, dst, panel);
    for (std::int64_t q = 0; q < queries; ++q)
        for (std::int64_t key = 0; key < keys; ++key)
            dst[key * panel + q] = src.first[q * src.row_bytes + key * src.column_bytes];
}

// Calls visit(vector) with full vectors of a contiguous row. Returns the number of elements
// visited.
template <elem_type Type, class Visit>
HWY_ATTR HWY_INLINE std::int64_t visit_vectors(const std::byte* row, std::int64_t columns,
                                               const Visit& visit) {
    std::int64_t first = 0;
    for (; first + f32_lanes() <= columns; first += f32_lanes())
        visit(load_elements<Type>(row + first * bytes_of(Type)));
    return first;
}

// Calls visit(vector) with a row's elements as f32. Lanes past the last element hold `*padding`, or
// an element of the row if `padding` is null.
template <class Visit>
HWY_ATTR HWY_INLINE void visit_row(const strided_matrix& src, std::int64_t row,
                                   std::int64_t columns, const float* padding, const Visit& visit) {
    const f32_tag d;
    const std::int64_t lanes = f32_lanes();
    strided_matrix part = src;
    part.first += row * src.row_bytes;
    std::int64_t first = 0;
    if (src.column_bytes == bytes_of(src.type))
        first = src.type == elem_type::f32
                    ? visit_vectors<elem_type::f32>(part.first, columns, visit)
                : src.type == elem_type::bf16
                    ? visit_vectors<elem_type::bf16>(part.first, columns, visit)
                    : visit_vectors<elem_type::f16>(part.first, columns, visit);
    part.first += first * src.column_bytes;
    float values[row_block_elems];
    for (; first < columns; first += row_block_elems) {
        const std::int64_t count = std::min(row_block_elems, columns - first);
        rows_as_f32(part, 1, count, values);
        std::fill(values + count, values + row_block_elems,
                  padding == nullptr ? values[0] : *padding);
        for (std::int64_t i = 0; i < count; i += lanes) visit(hn::LoadU(d, values + i));
        part.first += row_block_elems * src.column_bytes;
    }
}

HWY_ATTR inline void update_range(const strided_matrix& src, std::int64_t row_count,
                                  std::int64_t columns, number_range& range) {
    const f32_tag d;
    auto least = hn::Set(d, range.least), largest = hn::Set(d, range.largest), nan = hn::Zero(d);
    for (std::int64_t r = 0; r < row_count; ++r)
        visit_row(src, r, columns, nullptr, [&](vec_f32 value) HWY_ATTR {
            least = hn::Min(least, value);
            largest = hn::Max(largest, value);
            nan = hn::IfThenElse(hn::IsNaN(value), value, nan);
        });
    range = {hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, largest)),
             range.has_nan || !hn::AllFalse(d, hn::IsNaN(nan))};
}

HWY_ATTR inline float largest_norm(const strided_matrix& src, std::int64_t row_count,
                                   std::int64_t columns) {
    const f32_tag d;
    constexpr float zero = 0;
    float largest = 0;
    for (std::int64_t r = 0; r < row_count; ++r) {
        auto sum = hn::Zero(d);
        visit_row(src, r, columns, &zero,
                  [&](vec_f32 value) HWY_ATTR { sum = hn::MulAdd(value, value, sum); });
        const float square = hn::GetLane(hn::SumOfLanes(d, sum));
        if (square != square) return square;
        largest = std::max(largest, square);
    }
    return hn::GetLane(hn::Sqrt(hn::Set(d, largest)));
}

HWY_ATTR inline void panel_add_rows(const std::byte* row, std::int64_t row_bytes,
                                    std::int64_t count, std::int64_t columns, float* sums) {
    const f32_tag d;
    const std::int64_t lanes = f32_lanes();
    for (std::int64_t r = 0; r < count; ++r, row += row_bytes) {
        std::int64_t c = 0;
        for (; c + lanes <= columns; c += lanes) {
            const auto more = load_elements<elem_type::f32>(row + c * bytes_of(elem_type::f32));
            hn::StoreU(hn::Add(hn::LoadU(d, sums + c), more), d, sums + c);
        }
        for (; c < columns; ++c) {
            float value;
            std::memcpy(&value, row + c * bytes_of(elem_type::f32), sizeof value);
            sums[c] += value;
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_MOVE_INL
