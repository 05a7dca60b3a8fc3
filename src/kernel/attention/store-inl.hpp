// Stores results from panels to client memory, for one Highway target.

#if defined(MASKWISE_KERNEL_ATTENTION_STORE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_STORE_INL
#undef MASKWISE_KERNEL_ATTENTION_STORE_INL
#else
#define MASKWISE_KERNEL_ATTENTION_STORE_INL
#endif

#include "kernel/attention/move-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// Stores a row of f32 to elements with any stride.
HWY_ATTR inline void store_row(const float* row, std::int64_t columns, const strided_matrix& dst,
                               std::byte* row_dst) {
    const std::int64_t width = bytes_of(dst.type);
    const row_encoding encoding{dst.type, 1, 0, false};
    if (dst.column_bytes == width) return store_any(row, encoding, row_dst, columns, 1);
    std::byte buffer[row_block_elems * sizeof(float)];
    for (std::int64_t first = 0; first < columns; first += row_block_elems) {
        const std::int64_t count = std::min(row_block_elems, columns - first);
        store_any(row + first, encoding, buffer, count, 1);
        for (std::int64_t i = 0; i < count; ++i)
            std::memcpy(row_dst + (first + i) * dst.column_bytes, buffer + i * width,
                        static_cast<std::size_t>(width));
    }
}

// Multiplies a column of a panel by the queries' factors; a factor of 0 gives 0.
struct column_scaler {
    vec_f32 factor;

    HWY_ATTR HWY_INLINE vec_f32 operator()(const float* value) const {
        const f32_tag d;
        const auto zero = hn::Zero(d);
        return hn::IfThenElse(hn::Eq(factor, zero), zero, hn::Mul(hn::LoadU(d, value), factor));
    }
};

// Scales the panel in place.
HWY_ATTR HWY_INLINE void scale_panel(float* values, const float* factors, std::int64_t columns) {
    const f32_tag d;
    const std::int64_t panel = 2 * f32_lanes();
    for (std::int64_t lane = 0; lane < panel; lane += f32_lanes()) {
        const column_scaler scaled{hn::LoadU(d, factors + lane)};
        for (float* value = values + lane; value < values + columns * panel; value += panel)
            hn::StoreU(scaled(value), d, value);
    }
}

// Like scale_panel, but rounds to a 16-bit type and packs columns 2 * i and 2 * i + 1 as column i.
template <elem_type Type>
HWY_ATTR HWY_INLINE void pack_panel(float* values, const float* factors, std::int64_t columns) {
    const hn::RebindToUnsigned<f32_tag> du;
    const std::int64_t panel = 2 * f32_lanes();
    const auto bits_of = [&](vec_f32 value)
                             HWY_ATTR { return hn::PromoteTo(du, elements_of<Type>(value)); };
    for (std::int64_t lane = 0; lane < panel; lane += f32_lanes()) {
        const column_scaler scaled{hn::LoadU(f32_tag(), factors + lane)};
        const float* src = values + lane;
        float* dst = values + lane;
        for (std::int64_t c = 0; c < columns; c += 2, src += 2 * panel, dst += panel) {
            const auto even = bits_of(scaled(src)), odd = bits_of(scaled(src + panel));
            hn::StoreU(hn::BitCast(f32_tag(), hn::Or(even, hn::ShiftLeft<16>(odd))), f32_tag(),
                       dst);
        }
    }
}

HWY_ATTR inline void panel_store(float* values, const float* factors, std::int64_t queries,
                                 std::int64_t columns, const strided_matrix& dst, float* scratch) {
    const std::int64_t float_bytes = bytes_of(elem_type::f32), panel = 2 * f32_lanes();
    const auto* const bytes = reinterpret_cast<const std::byte*>(values);
    const auto transpose = [&](std::int64_t rows, std::byte* to, std::int64_t row_bytes) HWY_ATTR {
        transpose_matrix<4>(bytes, panel * float_bytes, rows, queries, to, row_bytes);
    };
    if (dst.type != elem_type::f32 && dst.column_bytes == bytes_of(dst.type) && columns % 2 == 0) {
        if (dst.type == elem_type::bf16)
            pack_panel<elem_type::bf16>(values, factors, columns);
        else
            pack_panel<elem_type::f16>(values, factors, columns);
        return transpose(columns / 2, dst.first, dst.row_bytes);
    }
    scale_panel(values, factors, columns);
    if (is_dense_f32(dst)) return transpose(columns, dst.first, dst.row_bytes);
    transpose(columns, reinterpret_cast<std::byte*>(scratch), columns * float_bytes);
    for (std::int64_t q = 0; q < queries; ++q)
        store_row(scratch + q * columns, columns, dst, dst.first + q * dst.row_bytes);
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_STORE_INL
