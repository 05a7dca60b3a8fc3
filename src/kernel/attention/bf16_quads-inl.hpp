// bf16 products for ARM by the instruction BFMMLA. BFMMLA multiplies two rows of a by two queries,
// two bf16 pairs each, and adds the products to four sums. BFMMLA rounds like two BFDOT
// instructions in sequence, so BFDOT can compute the tail rows.

#if defined(MASKWISE_KERNEL_ATTENTION_BF16_QUADS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_BF16_QUADS_INL
#undef MASKWISE_KERNEL_ATTENTION_BF16_QUADS_INL
#else
#define MASKWISE_KERNEL_ATTENTION_BF16_QUADS_INL
#endif

#include "kernel/attention/product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

#if MASKWISE_HAS_BF16_TABLE

#define MASKWISE_ZIP(operation, lane, a, b)                                                        \
    vec_f32(vreinterpretq_f32_##lane(v##operation##q_##lane(vreinterpretq_##lane##_f32((a).raw),   \
                                                            vreinterpretq_##lane##_f32((b).raw))))

HWY_ATTR HWY_INLINE void add_quads(vec_f32 a, vec_f32 b, vec_f32& sum) {
    asm(".arch_extension bf16\n\tbfmmla %0.4s, %1.8h, %2.8h"
        : "+w"(sum.raw)
        : "w"(a.raw), "w"(b.raw));
}

HWY_ATTR HWY_INLINE vec_f32 load_two(const std::byte* src) {
    return vec_f32(vcombine_f32(vld1_f32(reinterpret_cast<const float*>(src)), vdup_n_f32(0)));
}

// Loads two pairs from each of two rows (a quad). If ByRows, the pairs of one row are contiguous.
// Else the pairs of one step are contiguous.
template <bool ByRows>
HWY_ATTR HWY_INLINE vec_f32 load_quad(const std::byte* src, std::int64_t second_bytes) {
    const vec_f32 first = load_two(src), second = load_two(src + second_bytes);
    if constexpr (ByRows) return MASKWISE_ZIP(zip1, u64, first, second);
    return MASKWISE_ZIP(zip1, u32, first, second);
}

// Loads sums of two rows and a vector of queries; each result holds two queries of both rows.
HWY_ATTR HWY_INLINE void load_quad_sums(const float* c, vec_f32* low_high) {
    const auto row_0 = hn::LoadU(f32_tag(), c), row_1 = hn::LoadU(f32_tag(), c + 2 * f32_lanes());
    low_high[0] = MASKWISE_ZIP(zip1, u64, row_0, row_1);
    low_high[1] = MASKWISE_ZIP(zip2, u64, row_0, row_1);
}

HWY_ATTR HWY_INLINE void store_quad_sums(const vec_f32* low_high, const float* factor, float* c) {
    const vec_f32 row_0[2] = {MASKWISE_ZIP(uzp1, u64, low_high[0], low_high[1])};
    const vec_f32 row_1[2] = {MASKWISE_ZIP(uzp2, u64, low_high[0], low_high[1])};
    store_product<1>(row_0, factor, c);
    store_product<1>(row_1, factor, c + 2 * f32_lanes());
}

constexpr std::int64_t quad_rows = 8;

template <bool ByRows>
HWY_ATTR void multiply_quads(const panel_product& product, std::int64_t first) {
    const f32_tag d;
    const std::int64_t lanes = f32_lanes(), panel = 2 * lanes;
    const std::int64_t second_bytes = ByRows ? product.row_bytes : product.step_bytes;
    const std::byte* a = product.a + first * product.row_bytes;
    const float* b = product.b;
    float* const c = product.c + first * panel;
    constexpr int twos = quad_rows / 2;
    vec_f32 sums[std::size_t{twos}][4];
#pragma GCC unroll 4
    for (int i = 0; i < twos; ++i)
#pragma GCC unroll 4
        for (int q = 0; q < 4; ++q) sums[i][q] = hn::Zero(d);
    if (product.accumulates) {
#pragma GCC unroll 4
        for (int i = 0; i < twos; ++i) {
            load_quad_sums(c + 2 * i * panel, sums[i]);
            load_quad_sums(c + 2 * i * panel + lanes, sums[i] + 2);
        }
    }
    for (std::int64_t k = product.steps; k > 1; k -= 2) {
        const auto even_0 = hn::LoadU(d, b), even_1 = hn::LoadU(d, b + lanes);
        const auto odd_0 = hn::LoadU(d, b + panel), odd_1 = hn::LoadU(d, b + panel + lanes);
        const vec_f32 queries[] = {
            MASKWISE_ZIP(zip1, u32, even_0, odd_0), MASKWISE_ZIP(zip2, u32, even_0, odd_0),
            MASKWISE_ZIP(zip1, u32, even_1, odd_1), MASKWISE_ZIP(zip2, u32, even_1, odd_1)};
#pragma GCC unroll 4
        for (int i = 0; i < twos; ++i) {
            const auto rows = load_quad<ByRows>(a + 2 * i * product.row_bytes, second_bytes);
#pragma GCC unroll 4
            for (int q = 0; q < 4; ++q) add_quads(rows, queries[q], sums[i][q]);
        }
        a += 2 * product.step_bytes;
        b += 2 * panel;
    }
    const float* const factor = product.factor;
#pragma GCC unroll 4
    for (int i = 0; i < twos; ++i) {
        store_quad_sums(sums[i], factor, c + 2 * i * panel);
        store_quad_sums(sums[i] + 2, factor == nullptr ? nullptr : factor + lanes,
                        c + 2 * i * panel + lanes);
    }
}
#undef MASKWISE_ZIP

// Multiplies full blocks of rows by quads. BFDOT then adds the odd last step of these blocks, and
// multiplies the tail rows.
HWY_ATTR inline void multiply_by_quads(const panel_product& product) {
    const std::int64_t whole = product.rows / quad_rows * quad_rows;
    if (product.queries <= f32_lanes() || product.steps < 2)
        return multiply<bf16_pair_product>(product);
    const bool by_rows = product.step_bytes == bytes_of(elem_type::f32);
    for (std::int64_t first = 0; first < whole; first += quad_rows)
        if (by_rows)
            multiply_quads<true>(product, first);
        else
            multiply_quads<false>(product, first);
    panel_product rest = product;
    if (product.steps % 2 != 0) {
        rest.a += (product.steps - 1) * product.step_bytes;
        rest.b += (product.steps - 1) * 2 * f32_lanes();
        rest.rows = whole;
        rest.steps = 1;
        rest.factor = nullptr;
        rest.accumulates = true;
        multiply_by<bf16_pair_product, 2>(rest);
    }
    rest = product;
    rest.a += whole * product.row_bytes;
    rest.c += whole * 2 * f32_lanes();
    rest.rows -= whole;
    multiply_by<bf16_pair_product, 2>(rest);
}

#endif

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_BF16_QUADS_INL
