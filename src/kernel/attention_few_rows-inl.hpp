// Products of few queries with rows of a, of which the elements lie side by side, for one Highway
// target and one kind of elements; attention_product-inl.hpp includes it into its namespace. Lanes
// are elements of a row, which the queries share.

template <row_type Type, int Queries, int Rows>
MASKWISE_PRODUCT_ATTR void multiply_few_rows(const panel_product& product, std::int64_t row) {
    const row_d d;
    constexpr std::int64_t width = bytes_of(Type);
    const std::int64_t lanes = row_lanes(), steps = product.steps;
    const std::int64_t query_step = padded_elems(steps);
    const std::byte* const a = product.a + row * product.row_bytes;
    const std::byte* next = a + asked_ahead(product.row_bytes, steps, width);
    const bool is_dense = product.row_bytes == steps * width;
    const std::int64_t next_row = is_dense ? lanes * width : product.row_bytes;
    const std::int64_t next_step = is_dense ? Rows * lanes * width : lanes * width;
#define MASKWISE_SUM(n) [[maybe_unused]] auto s##n = hn::Zero(d);
    MASKWISE_FEW_SUMS(MASKWISE_SUM)
#undef MASKWISE_SUM
    std::int64_t k = 0;
    for (; k + lanes <= steps; k += lanes) {
        for (std::int64_t r = 0; r < Rows; ++r) __builtin_prefetch(next + r * next_row);
        next += next_step;
#define MASKWISE_SUM(n)                                                                            \
    if constexpr (n % 4 < Queries && n / 4 < Rows)                                                 \
        add_product(load_elements<Type>(a + n / 4 * product.row_bytes + k * width),                \
                    hn::LoadU(d, product.b + n % 4 * query_step + k), s##n);
        MASKWISE_FEW_SUMS(MASKWISE_SUM)
#undef MASKWISE_SUM
    }
    if (k < steps) {
#define MASKWISE_SUM(n)                                                                            \
    if constexpr (n % 4 < Queries && n / 4 < Rows)                                                 \
        add_product(load_part<Type>(a + n / 4 * product.row_bytes + k * width, steps - k),         \
                    hn::LoadU(d, product.b + n % 4 * query_step + k), s##n);
        MASKWISE_FEW_SUMS(MASKWISE_SUM)
#undef MASKWISE_SUM
    }
    float* const c = product.c + 4 * row;
#define MASKWISE_ROW(n, s_0, s_1, s_2, s_3)                                                        \
    if constexpr (n < Rows)                                                                        \
        hn::StoreU(sums_of_four(s##s_0, s##s_1, s##s_2, s##s_3), four_d(), c + 4 * n);
    MASKWISE_FEW_FOURS(MASKWISE_ROW)
#undef MASKWISE_ROW
}

template <row_type Type, int Queries>
MASKWISE_PRODUCT_ATTR void multiply_rows_of(const panel_product& product) {
    std::int64_t row = 0;
    for (; row + few_at_once <= product.rows; row += few_at_once)
        multiply_few_rows<Type, Queries, few_at_once>(product, row);
    for (; row < product.rows; ++row) multiply_few_rows<Type, Queries, 1>(product, row);
}

template <row_type Type>
MASKWISE_PRODUCT_ATTR void multiply_rows(const panel_product& product) {
    switch (product.queries) {
    case 1:
        return multiply_rows_of<Type, 1>(product);
    case 2:
        return multiply_rows_of<Type, 2>(product);
    case 3:
        return multiply_rows_of<Type, 3>(product);
    default:
        return multiply_rows_of<Type, 4>(product);
    }
}

// Of one query and a row.
template <row_type Type>
MASKWISE_PRODUCT_ATTR HWY_INLINE row_v product_of_row(const std::byte* a, std::int64_t steps,
                                                      const float* b, std::int64_t ahead) {
    const row_d d;
    const std::int64_t lanes = row_lanes(), bytes = lanes * bytes_of(Type);
    auto sum = hn::Zero(d);
    for (; steps >= lanes; steps -= lanes, a += bytes, b += lanes) {
        __builtin_prefetch(a + ahead);
        add_product(load_elements<Type>(a), hn::LoadU(d, b), sum);
    }
    if (steps > 0) add_product(load_part<Type>(a, steps), hn::LoadU(d, b), sum);
    return sum;
}

// One load goes through four rows, one line after another: memory is read faster so than by a load
// for each row.
template <row_type Type>
MASKWISE_PRODUCT_ATTR HWY_INLINE four_v products_of_rows(const panel_product& product,
                                                         std::int64_t row, std::int64_t count) {
    const row_d d;
    const std::int64_t lanes = row_lanes();
    float parts[4 * row_block_elems];
    if (count < 4) std::memset(parts, 0, sizeof parts);
    const std::byte* a = product.a + row * product.row_bytes;
    const std::int64_t ahead = asked_ahead(product.row_bytes, product.steps, bytes_of(Type));
#pragma GCC unroll 1
    for (std::int64_t r = 0; r < count; ++r, a += product.row_bytes)
        hn::StoreU(product_of_row<Type>(a, product.steps, product.b, ahead), d, parts + r * lanes);
    return sums_of_four(hn::LoadU(d, parts), hn::LoadU(d, parts + lanes),
                        hn::LoadU(d, parts + 2 * lanes), hn::LoadU(d, parts + 3 * lanes));
}

template <row_type Type>
MASKWISE_PRODUCT_ATTR void multiply_rows_by_one(const panel_product& product) {
    std::int64_t row = 0;
    for (; row + 4 <= product.rows; row += 4)
        hn::StoreU(products_of_rows<Type>(product, row, 4), four_d(), product.c + row);
    if (row == product.rows) return;
    float four[4];
    hn::StoreU(products_of_rows<Type>(product, row, product.rows - row), four_d(), four);
    std::copy_n(four, product.rows - row, product.c + row);
}
