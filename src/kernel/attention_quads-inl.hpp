// Products of bf16 for one Highway target of ARM by BFMMLA: in each 128 bits of vectors two rows of
// a, two pairs of each, by those of two queries. It rounds as BFDOT does for one pair and then the
// other, so rows behind whole blocks are left to `pairs`.
namespace quads {

#define MASKWISE_ZIP(operation, lane, a, b)                                                        \
    row_v(vreinterpretq_f32_##lane(v##operation##q_##lane(vreinterpretq_##lane##_f32((a).raw),     \
                                                          vreinterpretq_##lane##_f32((b).raw))))

HWY_ATTR HWY_INLINE void add_product(row_v a, row_v b, row_v& sum) {
    asm(".arch_extension bf16\n\tbfmmla %0.4s, %1.8h, %2.8h"
        : "+w"(sum.raw)
        : "w"(a.raw), "w"(b.raw));
}

// Two pairs that are adjacent in memory.
HWY_ATTR HWY_INLINE row_v load_two(const std::byte* from) {
    return row_v(vcombine_f32(vld1_f32(reinterpret_cast<const float*>(from)), vdup_n_f32(0)));
}

// Of two rows two pairs each: those of a row lie side by side, or else those of a step.
template <bool ByRows>
HWY_ATTR HWY_INLINE row_v load_quad(const std::byte* from, std::int64_t second_bytes) {
    const row_v first = load_two(from), second = load_two(from + second_bytes);
    if constexpr (ByRows) return MASKWISE_ZIP(zip1, u64, first, second);
    return MASKWISE_ZIP(zip1, u32, first, second);
}

// Two rows of sums, of which each 128 bits hold two queries of both.
HWY_ATTR HWY_INLINE void load_sums(const float* c, row_v& low, row_v& high) {
    const auto row_0 = hn::LoadU(row_d(), c), row_1 = hn::LoadU(row_d(), c + 2 * row_lanes());
    low = MASKWISE_ZIP(zip1, u64, row_0, row_1);
    high = MASKWISE_ZIP(zip2, u64, row_0, row_1);
}

HWY_ATTR HWY_INLINE void store_sums(row_v low, row_v high, const float* factor, float* c) {
    const row_v none = hn::Zero(row_d());
    pairs::store_product<1>(MASKWISE_ZIP(uzp1, u64, low, high), none, factor, c);
    pairs::store_product<1>(MASKWISE_ZIP(uzp2, u64, low, high), none, factor, c + 2 * row_lanes());
}

// Vectors of unknown length cannot stand in arrays, so twos of rows have names.
#define MASKWISE_BLOCK_TWOS(each) each(0) each(1) each(2) each(3)
constexpr std::int64_t block_rows = 8;

template <bool ByRows>
HWY_ATTR void multiply_block(const panel_product& product, std::int64_t first) {
    const row_d d;
    const std::int64_t lanes = row_lanes(), panel = 2 * lanes;
    const std::int64_t second_bytes = ByRows ? product.row_bytes : product.step_bytes;
    const std::byte* a = product.a + first * product.row_bytes;
    const float* b = product.b;
    float* const c = product.c + first * panel;
#define MASKWISE_ROW(n) auto w##n = hn::Zero(d), x##n = w##n, y##n = w##n, z##n = w##n;
    MASKWISE_BLOCK_TWOS(MASKWISE_ROW)
#undef MASKWISE_ROW
    if (product.goes_on) {
#define MASKWISE_ROW(n)                                                                            \
    load_sums(c + 2 * n * panel, w##n, x##n);                                                      \
    load_sums(c + 2 * n * panel + lanes, y##n, z##n);
        MASKWISE_BLOCK_TWOS(MASKWISE_ROW)
#undef MASKWISE_ROW
    }
    for (std::int64_t k = product.steps; k > 1; k -= 2) {
        const auto even_0 = hn::LoadU(d, b), even_1 = hn::LoadU(d, b + lanes);
        const auto odd_0 = hn::LoadU(d, b + panel), odd_1 = hn::LoadU(d, b + panel + lanes);
        const auto b_0 = MASKWISE_ZIP(zip1, u32, even_0, odd_0);
        const auto b_1 = MASKWISE_ZIP(zip2, u32, even_0, odd_0);
        const auto b_2 = MASKWISE_ZIP(zip1, u32, even_1, odd_1);
        const auto b_3 = MASKWISE_ZIP(zip2, u32, even_1, odd_1);
#define MASKWISE_ROW(n)                                                                            \
    const auto a_##n = load_quad<ByRows>(a + 2 * n * product.row_bytes, second_bytes);             \
    add_product(a_##n, b_0, w##n);                                                                 \
    add_product(a_##n, b_1, x##n);                                                                 \
    add_product(a_##n, b_2, y##n);                                                                 \
    add_product(a_##n, b_3, z##n);
        MASKWISE_BLOCK_TWOS(MASKWISE_ROW)
#undef MASKWISE_ROW
        a += 2 * product.step_bytes;
        b += 2 * panel;
    }
#define MASKWISE_ROW(n)                                                                            \
    store_sums(w##n, x##n, product.factor, c + 2 * n * panel);                                     \
    store_sums(y##n, z##n, product.factor == nullptr ? nullptr : product.factor + lanes,           \
               c + 2 * n * panel + lanes);
    MASKWISE_BLOCK_TWOS(MASKWISE_ROW)
#undef MASKWISE_ROW
}
#undef MASKWISE_BLOCK_TWOS
#undef MASKWISE_ZIP

// Whole blocks by quads, then their last step where it is alone, then rows behind them.
HWY_ATTR inline void multiply(const panel_product& product) {
    const std::int64_t whole = product.rows / block_rows * block_rows;
    if (product.queries <= row_lanes() || product.steps < 2) return pairs::multiply(product);
    const bool by_rows = product.step_bytes == bytes_of(row_type::f32);
    for (std::int64_t first = 0; first < whole; first += block_rows)
        if (by_rows)
            multiply_block<true>(product, first);
        else
            multiply_block<false>(product, first);
    panel_product rest = product;
    if (product.steps % 2 != 0) {
        rest.a += (product.steps - 1) * product.step_bytes;
        rest.b += (product.steps - 1) * 2 * row_lanes();
        rest.rows = whole;
        rest.steps = 1;
        rest.factor = nullptr;
        rest.goes_on = true;
        pairs::multiply_by<2>(rest);
    }
    rest = product;
    rest.a += whole * product.row_bytes;
    rest.c += whole * 2 * row_lanes();
    rest.rows -= whole;
    pairs::multiply_by<2>(rest);
}

} // namespace quads

// The kernels of this target, with products of bf16.
constexpr attention_kernels attention_by_quads() {
    attention_kernels made = attention;
    made.multiply_key_pairs = made.multiply_value_pairs = quads::multiply;
    return made;
}

constexpr attention_kernels attention_of_few_by_pairs =
    attention_by_few<few_panel<4>>(pairs::multiply_rows<row_type::f32>);
constexpr attention_kernels attention_of_one_by_pairs =
    attention_by_few<few_panel<1>>(pairs::multiply_rows_by_one<row_type::f32>);
