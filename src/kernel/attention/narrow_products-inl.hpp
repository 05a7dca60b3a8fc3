// Products of a narrow panel with contiguous rows of a, for one Highway target. The lanes of a
// vector are elements of a row, which all queries share.

#if defined(MASKWISE_KERNEL_ATTENTION_NARROW_PRODUCTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_NARROW_PRODUCTS_INL
#undef MASKWISE_KERNEL_ATTENTION_NARROW_PRODUCTS_INL
#else
#define MASKWISE_KERNEL_ATTENTION_NARROW_PRODUCTS_INL
#endif

#include "kernel/attention/f32x4-inl.hpp"
#include "kernel/attention/product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// Memory limits these products, so they prefetch rows this many bytes ahead, even past the end of
// the tile. prefetch_distance converts the bytes to a distance in a.
constexpr std::int64_t prefetch_bytes = 6144; // mutate.py: skip
HWY_INLINE std::int64_t prefetch_distance(std::int64_t row_bytes, std::int64_t elems,
                                          std::int64_t width) {
    return prefetch_bytes / std::max<std::int64_t>(1, elems * width) * row_bytes;
}

#if HWY_TARGET != HWY_SCALAR

// The number of sums that fit the registers: rows_at_once rows times four queries.
constexpr int max_sums = HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM ? 16 : 8; // mutate.py: skip
constexpr int rows_at_once = max_sums / 4;

template <class Product, int Queries>
MASKWISE_PRODUCT_ATTR HWY_INLINE void add_queries(vec_f32 elements, const float* b,
                                                  std::int64_t query_step, vec_f32 (&sums)[4]) {
#pragma GCC unroll 4
    for (int query = 0; query < Queries; ++query)
        Product::add(elements, hn::LoadU(f32_tag(), b + query * query_step), sums[query]);
}

template <class Product, elem_type Type, int Queries, int Rows>
MASKWISE_PRODUCT_ATTR void multiply_row_block(const panel_product& product, std::int64_t first) {
    const f32_tag d;
    constexpr std::int64_t width = bytes_of(Type);
    const std::int64_t lanes = f32_lanes(), steps = product.steps;
    const std::int64_t query_step = padded_elems(steps);
    const std::byte* const a = product.a + first * product.row_bytes;
    const std::byte* next = a + prefetch_distance(product.row_bytes, steps, width);
    const bool is_dense = product.row_bytes == steps * width;
    const std::int64_t next_row = is_dense ? lanes * width : product.row_bytes;
    const std::int64_t next_step = is_dense ? Rows * lanes * width : lanes * width;
    vec_f32 sums[std::size_t{Rows}][4];
#pragma GCC unroll 4
    for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 4
        for (int query = 0; query < 4; ++query) sums[row][query] = hn::Zero(d);
    std::int64_t k = 0;
    for (; k + lanes <= steps; k += lanes) {
        for (std::int64_t r = 0; r < Rows; ++r) __builtin_prefetch(next + r * next_row);
        next += next_step;
#pragma GCC unroll 4
        for (int row = 0; row < Rows; ++row)
            add_queries<Product, Queries>(
                load_elements<Type>(a + row * product.row_bytes + k * width), product.b + k,
                query_step, sums[row]);
    }
    if (k < steps) {
#pragma GCC unroll 4
        for (int row = 0; row < Rows; ++row)
            add_queries<Product, Queries>(
                load_part<Type>(a + row * product.row_bytes + k * width, steps - k), product.b + k,
                query_step, sums[row]);
    }
    float* const c = product.c + 4 * first;
#pragma GCC unroll 4
    for (int row = 0; row < Rows; ++row) hn::StoreU(sum_lanes(sums[row]), f32x4_tag(), c + 4 * row);
}

template <class Product, elem_type Type, int Queries>
MASKWISE_PRODUCT_ATTR void multiply_rows_of(const panel_product& product) {
    std::int64_t row = 0;
    for (; row + rows_at_once <= product.rows; row += rows_at_once)
        multiply_row_block<Product, Type, Queries, rows_at_once>(product, row);
    for (; row < product.rows; ++row) multiply_row_block<Product, Type, Queries, 1>(product, row);
}

template <class Product, elem_type Type>
MASKWISE_PRODUCT_ATTR void multiply_rows(const panel_product& product) {
    switch (product.queries) {
    case 1:
        return multiply_rows_of<Product, Type, 1>(product);
    case 2:
        return multiply_rows_of<Product, Type, 2>(product);
    case 3:
        return multiply_rows_of<Product, Type, 3>(product);
    default:
        return multiply_rows_of<Product, Type, 4>(product);
    }
}

template <class Product, elem_type Type>
MASKWISE_PRODUCT_ATTR HWY_INLINE vec_f32 product_of_row(const std::byte* a, std::int64_t steps,
                                                        const float* b, std::int64_t ahead) {
    const f32_tag d;
    const std::int64_t lanes = f32_lanes(), bytes = lanes * bytes_of(Type);
    auto sum = hn::Zero(d);
    for (; steps >= lanes; steps -= lanes, a += bytes, b += lanes) {
        __builtin_prefetch(a + ahead);
        Product::add(load_elements<Type>(a), hn::LoadU(d, b), sum);
    }
    if (steps > 0) Product::add(load_part<Type>(a, steps), hn::LoadU(d, b), sum);
    return sum;
}

// The loop over rows is not unrolled: one load instruction that reads all rows in order is faster
// than one load instruction per row. So the sums are in memory, not in registers.
template <class Product, elem_type Type>
MASKWISE_PRODUCT_ATTR HWY_INLINE f32x4 products_of_rows(const panel_product& product,
                                                        std::int64_t row, std::int64_t count) {
    const f32_tag d;
    const std::int64_t lanes = f32_lanes();
    float parts[4 * row_block_elems];
    if (count < 4) std::memset(parts, 0, sizeof parts);
    const std::byte* a = product.a + row * product.row_bytes;
    const std::int64_t ahead = prefetch_distance(product.row_bytes, product.steps, bytes_of(Type));
#pragma GCC unroll 1
    for (std::int64_t r = 0; r < count; ++r, a += product.row_bytes)
        hn::StoreU(product_of_row<Product, Type>(a, product.steps, product.b, ahead), d,
                   parts + r * lanes);
    return sum_lanes({hn::LoadU(d, parts), hn::LoadU(d, parts + lanes),
                      hn::LoadU(d, parts + 2 * lanes), hn::LoadU(d, parts + 3 * lanes)});
}

template <class Product, elem_type Type>
MASKWISE_PRODUCT_ATTR void multiply_rows_by_one(const panel_product& product) {
    std::int64_t row = 0;
    for (; row + 4 <= product.rows; row += 4)
        hn::StoreU(products_of_rows<Product, Type>(product, row, 4), f32x4_tag(), product.c + row);
    if (row == product.rows) return;
    float four[4];
    hn::StoreU(products_of_rows<Product, Type>(product, row, product.rows - row), f32x4_tag(),
               four);
    std::copy_n(four, product.rows - row, product.c + row);
}

#endif

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_NARROW_PRODUCTS_INL
