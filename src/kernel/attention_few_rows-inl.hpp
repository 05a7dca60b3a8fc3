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
    const std::int64_t ahead = asked_ahead(product.row_bytes, steps, width);
#define MASKWISE_SUM(n) [[maybe_unused]] auto s##n = hn::Zero(d);
    MASKWISE_FEW_SUMS(MASKWISE_SUM)
#undef MASKWISE_SUM
    std::int64_t k = 0;
    for (; k + lanes <= steps; k += lanes) {
        for (std::int64_t r = 0; r < Rows; ++r)
            __builtin_prefetch(a + r * product.row_bytes + k * width + ahead);
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
