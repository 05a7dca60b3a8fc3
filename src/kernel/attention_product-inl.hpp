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

// Asks for the tile behind: with some rows of `a` for as large a part of that.
MASKWISE_PRODUCT_ATTR HWY_INLINE void ask_ahead_of(const panel_product& product, std::int64_t first,
                                                   std::int64_t last) {
    if (product.ahead_bytes == 0) return;
    constexpr std::int64_t width = bytes_of(row_type::f32);
    const bool has_rows = product.step_bytes == width;
    const std::int64_t rows = has_rows ? product.rows : product.steps;
    const std::int64_t row_bytes = has_rows ? product.row_bytes : product.step_bytes;
    const std::int64_t bytes = width * (has_rows ? product.steps : product.rows);
    const std::byte* const next = product.a + product.ahead_bytes;
    for (std::int64_t r = rows * first / product.rows; r < rows * last / product.rows; ++r)
        ask_for_row(next + r * row_bytes, bytes);
}

template <int Rows, int Vectors>
MASKWISE_PRODUCT_ATTR HWY_INLINE void multiply_next(const panel_product& product,
                                                    std::int64_t& first) {
    ask_ahead_of(product, first, first + Rows);
    multiply_block<Rows, Vectors>(product, first);
    first += Rows;
}

// A tile's 64 rows end with two blocks of eight, not with one of four: it has too few sums to hide
// what a step takes.
template <int Vectors>
MASKWISE_PRODUCT_ATTR HWY_INLINE void multiply_by(const panel_product& product) {
    constexpr std::int64_t some = block_rows * 2 / 3;
    std::int64_t first = 0;
    for (std::int64_t left = product.rows; left >= block_rows; left = product.rows - first)
        if (left > block_rows && left <= 2 * some)
            multiply_next<some, Vectors>(product, first);
        else
            multiply_next<block_rows, Vectors>(product, first);
    if (first < product.rows) ask_ahead_of(product, first, product.rows);
    multiply_rest<block_rows - 1, Vectors>(product, first);
}

MASKWISE_PRODUCT_ATTR inline void multiply(const panel_product& product) {
    if (product.queries <= row_lanes())
        multiply_by<1>(product);
    else
        multiply_by<2>(product);
}

#if HWY_TARGET != HWY_SCALAR
#include "kernel/attention_few_rows-inl.hpp"
#endif

} // namespace MASKWISE_PRODUCTS
