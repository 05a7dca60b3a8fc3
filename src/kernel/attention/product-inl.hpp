// Products of a panel, for one Highway target. f32 and bf16 pairs share the loops. `Product::add`
// adds the product of an element of `a` and a vector of `b`.

#if defined(MASKWISE_KERNEL_ATTENTION_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_PRODUCT_INL
#undef MASKWISE_KERNEL_ATTENTION_PRODUCT_INL
#else
#define MASKWISE_KERNEL_ATTENTION_PRODUCT_INL
#endif

#include "kernel/attention/contract.hpp"
#include "kernel/attention/move-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

// One function attribute serves f32 and bf16 products, because a template argument cannot choose an
// attribute.
#undef MASKWISE_PRODUCT_ATTR
#if HWY_TARGET == HWY_AVX3
#define MASKWISE_PRODUCT_ATTR __attribute__((target(HWY_TARGET_STR ",avx512bf16")))
#else
#define MASKWISE_PRODUCT_ATTR HWY_ATTR
#endif

struct f32_product {
    static HWY_ATTR HWY_INLINE void add(vec_f32 a, vec_f32 b, vec_f32& sum) {
        sum = hn::MulAdd(a, b, sum);
    }
};

#if HWY_TARGET == HWY_AVX3 || MASKWISE_HAS_BF16_TABLE

// An element is a pair of bf16. ARM uses assembly, because GCC's intrinsics require the caller to
// name an architecture. With -mcpu of a newer CPU, the name would differ from Highway's.
struct bf16_pair_product {
    static MASKWISE_PRODUCT_ATTR HWY_INLINE void add(vec_f32 a, vec_f32 b, vec_f32& sum) {
#if HWY_TARGET == HWY_AVX3
        sum.raw = _mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(b.raw),
                                   reinterpret_cast<__m512bh>(a.raw));
#else
        asm(".arch_extension bf16\n\tbfdot %0.4s, %1.8h, %2.8h"
            : "+w"(sum.raw)
            : "w"(b.raw), "w"(a.raw));
#endif
    }
};

#endif

// Rows of a in a block. 32 registers hold 12 rows: 24 sums, two vectors of b and one vector of a.
// 16 registers hold 6 rows.
constexpr std::int64_t block_rows =
    HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM ? 12 : 6; // mutate.py: skip

// Addresses of the rows of a block: one base per three rows, plus a stride.
template <int Rows>
struct block_addresses {
    static constexpr int count = (Rows + 2) / 3;
    const std::byte* threes[std::size_t{count}];
    std::int64_t row_bytes;

    HWY_INLINE block_addresses(const std::byte* first, std::int64_t bytes) : row_bytes(bytes) {
#pragma GCC unroll 4
        for (int i = 0; i < count; ++i) threes[i] = first + std::int64_t{3} * i * bytes;
    }
    HWY_INLINE void advance(std::int64_t bytes) {
#pragma GCC unroll 4
        for (int i = 0; i < count; ++i) threes[i] += bytes;
    }
    HWY_INLINE float load(int row) const {
        float value;
        std::memcpy(&value, threes[row / 3] + row % 3 * row_bytes, sizeof value);
        return value;
    }
};

template <int Vectors>
MASKWISE_PRODUCT_ATTR HWY_INLINE void store_product(const vec_f32 (&sums)[2], const float* factor,
                                                    float* c) {
    const f32_tag d;
    const std::int64_t lanes = f32_lanes();
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
        vec_f32 sum = sums[v];
        if (factor != nullptr)
            sum = hn::MulAdd(hn::LoadU(d, c + v * lanes), hn::LoadU(d, factor + v * lanes), sum);
        hn::StoreU(sum, d, c + v * lanes);
    }
}

template <class Product, int Rows, int Vectors>
MASKWISE_PRODUCT_ATTR void multiply_block(const panel_product& product, std::int64_t first) {
    const f32_tag d;
    const std::int64_t lanes = f32_lanes(), step_bytes = product.step_bytes;
    block_addresses<Rows> a(product.a + first * product.row_bytes, product.row_bytes);
    const float* b = product.b;
    const std::int64_t panel = 2 * lanes;
    float* const c = product.c + first * panel;
    vec_f32 sums[std::size_t{Rows}][2];
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row) sums[row][0] = sums[row][1] = hn::Zero(d);
    if (product.accumulates) {
#pragma GCC unroll 16
        for (int row = 0; row < Rows; ++row) {
            sums[row][0] = hn::LoadU(d, c + row * panel);
            if constexpr (Vectors == 2) sums[row][1] = hn::LoadU(d, c + row * panel + lanes);
        }
    }
    for (std::int64_t k = product.steps; k > 0; --k) {
        const auto b_0 = hn::LoadU(d, b);
        const auto b_1 = Vectors == 2 ? hn::LoadU(d, b + lanes) : b_0;
#pragma GCC unroll 16
        for (int row = 0; row < Rows; ++row) {
            const auto element = hn::Set(d, a.load(row));
            Product::add(element, b_0, sums[row][0]);
            if constexpr (Vectors == 2) Product::add(element, b_1, sums[row][1]);
        }
        a.advance(step_bytes);
        b += 2 * lanes;
    }
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row)
        store_product<Vectors>(sums[row], product.factor, c + row * panel);
}

// Multiplies the rows past the last full block.
template <class Product, int Rows, int Vectors>
MASKWISE_PRODUCT_ATTR HWY_INLINE void multiply_rest(const panel_product& product,
                                                    std::int64_t first) {
    if constexpr (Rows > 0) {
        if (product.rows - first == Rows)
            return multiply_block<Product, Rows, Vectors>(product, first);
        multiply_rest<Product, Rows - 1, Vectors>(product, first);
    }
}

// Prefetches the part of the next tile that corresponds to rows [first, last).
MASKWISE_PRODUCT_ATTR HWY_INLINE void prefetch_next_tile(const panel_product& product,
                                                         std::int64_t first, std::int64_t last) {
    if (product.ahead_bytes == 0) return;
    constexpr std::int64_t width = bytes_of(elem_type::f32);
    const bool has_rows = product.step_bytes == width;
    const std::int64_t rows = has_rows ? product.rows : product.steps;
    const std::int64_t row_bytes = has_rows ? product.row_bytes : product.step_bytes;
    const std::int64_t bytes = width * (has_rows ? product.steps : product.rows);
    const std::int64_t begin = rows * first / product.rows, end = rows * last / product.rows;
    prefetch_rows(product.a + product.ahead_bytes + begin * row_bytes, row_bytes, end - begin,
                  bytes);
}

template <class Product, int Rows, int Vectors>
MASKWISE_PRODUCT_ATTR HWY_INLINE void multiply_next(const panel_product& product,
                                                    std::int64_t& first) {
    prefetch_next_tile(product, first, first + Rows);
    multiply_block<Product, Rows, Vectors>(product, first);
    first += Rows;
}

// With blocks of 12 rows, splits the last 16 of 64 rows into 8 + 8 instead of 12 + 4, because a
// block of 4 has too few sums to hide the latency of a step.
template <class Product, int Vectors>
MASKWISE_PRODUCT_ATTR HWY_INLINE void multiply_by(const panel_product& product) {
    constexpr std::int64_t medium_rows = block_rows * 2 / 3;
    std::int64_t first = 0;
    for (std::int64_t rest = product.rows; rest >= block_rows; rest = product.rows - first)
        if (rest > block_rows && rest <= 2 * medium_rows)
            multiply_next<Product, medium_rows, Vectors>(product, first);
        else
            multiply_next<Product, block_rows, Vectors>(product, first);
    if (first < product.rows) prefetch_next_tile(product, first, product.rows);
    multiply_rest<Product, block_rows - 1, Vectors>(product, first);
}

template <class Product>
MASKWISE_PRODUCT_ATTR void multiply(const panel_product& product) {
    if (product.queries <= f32_lanes())
        multiply_by<Product, 1>(product);
    else
        multiply_by<Product, 2>(product);
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_PRODUCT_INL
