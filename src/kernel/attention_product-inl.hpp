// A product of a panel for one Highway target and one kind of elements; attention_kernel-inl.hpp
// includes it for each kind, into the namespace MASKWISE_PRODUCTS, where add_product is. Functions
// have the attribute MASKWISE_PRODUCT_ATTR: their instruction set.

namespace MASKWISE_PRODUCTS {

// A block of a product is twelve rows of a where there are 32 registers: two vectors for each, two
// of b, and one of a. With 16 registers it is six.
constexpr std::int64_t block_rows = HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM ? 12 : 6; // speed

// Vectors of unknown length cannot stand in arrays, so rows have names.
#define MASKWISE_BLOCK_ROWS(each)                                                                  \
    each(0) each(1) each(2) each(3) each(4) each(5) each(6) each(7) each(8) each(9) each(10)       \
        each(11)

// Rows of a that are read together: one address and a distance for each three of them.
struct block_addresses {
    const std::byte *rows_0, *rows_3, *rows_6, *rows_9;
    std::int64_t row_bytes;

    HWY_INLINE block_addresses(const std::byte* first, std::int64_t bytes)
        : rows_0(first), rows_3(first + 3 * bytes), rows_6(first + 6 * bytes),
          rows_9(first + 9 * bytes), row_bytes(bytes) {}
    HWY_INLINE void advance(std::int64_t bytes) {
        rows_0 += bytes;
        rows_3 += bytes;
        rows_6 += bytes;
        rows_9 += bytes;
    }
    template <int Row>
    HWY_INLINE float at() const {
        const std::byte* const three = Row < 3   ? rows_0
                                       : Row < 6 ? rows_3
                                       : Row < 9 ? rows_6
                                                 : rows_9;
        float value;
        std::memcpy(&value, three + (Row % 3) * row_bytes, sizeof value);
        return value;
    }
};

template <int Vectors>
MASKWISE_PRODUCT_ATTR HWY_INLINE void add_products(float a, row_v b_0, row_v b_1, row_v& sum_0,
                                                   row_v& sum_1) {
    const auto all = hn::Set(row_d(), a);
    add_product(all, b_0, sum_0);
    if constexpr (Vectors == 2) add_product(all, b_1, sum_1);
}

template <int Vectors>
MASKWISE_PRODUCT_ATTR HWY_INLINE void store_product(row_v sum_0, row_v sum_1, const float* factor,
                                                    float* c) {
    const row_d d;
    const std::int64_t lanes = row_lanes();
    if (factor != nullptr) sum_0 = hn::MulAdd(hn::LoadU(d, c), hn::LoadU(d, factor), sum_0);
    hn::StoreU(sum_0, d, c);
    if constexpr (Vectors == 2) {
        c += lanes;
        if (factor != nullptr)
            sum_1 = hn::MulAdd(hn::LoadU(d, c), hn::LoadU(d, factor + lanes), sum_1);
        hn::StoreU(sum_1, d, c);
    }
}

template <int Vectors>
MASKWISE_PRODUCT_ATTR HWY_INLINE void load_product(row_v& sum_0, row_v& sum_1, const float* c) {
    sum_0 = hn::LoadU(row_d(), c);
    if constexpr (Vectors == 2) sum_1 = hn::LoadU(row_d(), c + row_lanes());
}

template <int Rows, int Vectors>
MASKWISE_PRODUCT_ATTR void multiply_block(const panel_product& product, std::int64_t first) {
    const row_d d;
    const std::int64_t lanes = row_lanes(), step_bytes = product.step_bytes;
    block_addresses a(product.a + first * product.row_bytes, product.row_bytes);
    const float* b = product.b;
    const std::int64_t panel = 2 * lanes;
    float* const c = product.c + first * panel;
#define MASKWISE_ROW(n) [[maybe_unused]] auto x##n = hn::Zero(d), y##n = hn::Zero(d);
    MASKWISE_BLOCK_ROWS(MASKWISE_ROW)
#undef MASKWISE_ROW
    if (product.goes_on) {
#define MASKWISE_ROW(n)                                                                            \
    if constexpr (n < Rows) load_product<Vectors>(x##n, y##n, c + n * panel);
        MASKWISE_BLOCK_ROWS(MASKWISE_ROW)
#undef MASKWISE_ROW
    }
    for (std::int64_t k = product.steps; k > 0; --k) {
        const auto b_0 = hn::LoadU(d, b);
        const auto b_1 = Vectors == 2 ? hn::LoadU(d, b + lanes) : b_0;
#define MASKWISE_ROW(n)                                                                            \
    if constexpr (n < Rows) add_products<Vectors>(a.at<n>(), b_0, b_1, x##n, y##n);
        MASKWISE_BLOCK_ROWS(MASKWISE_ROW)
#undef MASKWISE_ROW
        a.advance(step_bytes);
        b += 2 * lanes;
    }
#define MASKWISE_ROW(n)                                                                            \
    if constexpr (n < Rows) store_product<Vectors>(x##n, y##n, product.factor, c + n * panel);
    MASKWISE_BLOCK_ROWS(MASKWISE_ROW)
#undef MASKWISE_ROW
}
#undef MASKWISE_BLOCK_ROWS

// What is left behind whole blocks: fewer rows.
template <int Rows, int Vectors>
MASKWISE_PRODUCT_ATTR HWY_INLINE void multiply_rest(const panel_product& product,
                                                    std::int64_t first) {
    if constexpr (Rows > 0) {
        if (product.rows - first == Rows) return multiply_block<Rows, Vectors>(product, first);
        multiply_rest<Rows - 1, Vectors>(product, first);
    }
}

template <int Vectors>
MASKWISE_PRODUCT_ATTR HWY_INLINE void multiply_by(const panel_product& product) {
    std::int64_t first = 0;
    for (; first + block_rows <= product.rows; first += block_rows)
        multiply_block<block_rows, Vectors>(product, first);
    multiply_rest<block_rows - 1, Vectors>(product, first);
}

// A panel of few queries leaves most lanes unused: there lanes are elements of a that lie side by
// side, a query at a time.
constexpr std::int64_t few_queries = 4, few_steps = 512;

MASKWISE_PRODUCT_ATTR HWY_INLINE void store_sum(const panel_product& product, std::int64_t row,
                                                std::int64_t query, float sum) {
    float& c = product.c[row * 2 * row_lanes() + query];
    if (product.goes_on)
        c += sum;
    else
        c = product.factor == nullptr ? sum : c * product.factor[query] + sum;
}

// Less than a vector of a row, for which b has zeros.
MASKWISE_PRODUCT_ATTR HWY_INLINE row_v load_rest(const std::byte* a, std::int64_t elems) {
    float rest[row_block_elems] = {};
    std::memcpy(rest, a, static_cast<std::size_t>(elems) * sizeof(float));
    return hn::LoadU(row_d(), rest);
}

// Elements of a row of a lie side by side: up to few_steps of them.
MASKWISE_PRODUCT_ATTR inline void multiply_rows(const panel_product& product, std::int64_t query) {
    const row_d d;
    const std::int64_t lanes = row_lanes(), steps = product.steps;
    float b[few_steps + row_block_elems] = {};
    for (std::int64_t k = 0; k < steps; ++k) b[k] = product.b[k * 2 * lanes + query];
    for (std::int64_t row = 0; row < product.rows; ++row) {
        const auto* const a = product.a + row * product.row_bytes;
        auto sum_0 = hn::Zero(d), sum_1 = hn::Zero(d);
        std::int64_t k = 0;
        for (; k + 2 * lanes <= steps; k += 2 * lanes) {
            const auto* const at = reinterpret_cast<const float*>(a) + k;
            add_product(hn::LoadU(d, at), hn::LoadU(d, b + k), sum_0);
            add_product(hn::LoadU(d, at + lanes), hn::LoadU(d, b + k + lanes), sum_1);
        }
        for (; k < steps; k += lanes) {
            const std::byte* const at = a + k * bytes_of(row_type::f32);
            const auto rest =
                steps - k < lanes ? load_rest(at, steps - k) : load_elements<row_type::f32>(at);
            add_product(rest, hn::LoadU(d, b + k), sum_0);
        }
        store_sum(product, row, query, hn::GetLane(hn::SumOfLanes(d, hn::Add(sum_0, sum_1))));
    }
}

// Elements of a step lie side by side: whole vectors of rows.
MASKWISE_PRODUCT_ATTR HWY_INLINE void multiply_columns(const panel_product& product,
                                                       std::int64_t query, std::int64_t whole) {
    const row_d d;
    const std::int64_t lanes = row_lanes(), panel = 2 * lanes;
    for (std::int64_t row = 0; row < whole;) {
        const bool is_pair = row + panel <= whole;
        const std::int64_t second = is_pair ? lanes : 0;
        const std::int64_t count = is_pair ? panel : lanes;
        float sums[2 * row_block_elems] = {};
        if (product.goes_on)
            for (std::int64_t i = 0; i < count; ++i) sums[i] = product.c[(row + i) * panel + query];
        auto sum_0 = hn::LoadU(d, sums), sum_1 = hn::LoadU(d, sums + lanes);
        const std::byte* a = product.a + row * bytes_of(row_type::f32);
        for (std::int64_t k = 0; k < product.steps; ++k, a += product.step_bytes) {
            const auto b = hn::Set(d, product.b[k * panel + query]);
            const auto* const at = reinterpret_cast<const float*>(a);
            add_product(hn::LoadU(d, at), b, sum_0);
            add_product(hn::LoadU(d, at + second), b, sum_1);
        }
        hn::StoreU(sum_0, d, sums);
        hn::StoreU(sum_1, d, sums + lanes);
        for (std::int64_t i = 0; i < count; ++i)
            if (product.goes_on)
                product.c[(row + i) * panel + query] = sums[i];
            else
                store_sum(product, row + i, query, sums[i]);
        row += count;
    }
}

MASKWISE_PRODUCT_ATTR inline void multiply_all_columns(const panel_product& product) {
    const std::int64_t lanes = row_lanes(), whole = product.rows / lanes * lanes;
    for (std::int64_t q = 0; q < product.queries; ++q) multiply_columns(product, q, whole);
    panel_product rest = product;
    rest.a += whole * product.row_bytes;
    rest.c += whole * 2 * lanes;
    rest.rows -= whole;
    multiply_by<1>(rest);
}

MASKWISE_PRODUCT_ATTR inline void multiply(const panel_product& product) {
    const std::int64_t width = bytes_of(row_type::f32);
    const bool is_for_few = product.queries <= few_queries; // speed
    if (is_for_few && product.step_bytes == width && product.steps <= few_steps)
        for (std::int64_t q = 0; q < product.queries; ++q) multiply_rows(product, q);
    else if (is_for_few && product.row_bytes == width)
        multiply_all_columns(product);
    else if (product.queries <= row_lanes())
        multiply_by<1>(product);
    else
        multiply_by<2>(product);
}

} // namespace MASKWISE_PRODUCTS
