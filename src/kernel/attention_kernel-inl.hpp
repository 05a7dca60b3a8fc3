// Arithmetic of attention for one Highway target.

#include "kernel/attention_move-inl.hpp"

#include "kernel/attention_fours-inl.hpp"

// Sums of few queries, and rows of four queries, that are made together: there are registers for
// them.
constexpr int few_sums = HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM ? 16 : 8; // speed
constexpr int few_at_once = few_sums / 4;

// They wait for memory: lines are asked for when so many bytes of rows lie between, also those of
// the tile behind this one. Returns how far ahead a row is.
constexpr std::int64_t asked_bytes = 8192; // speed
HWY_INLINE std::int64_t asked_ahead(std::int64_t row_bytes, std::int64_t elems,
                                    std::int64_t width) {
    return asked_bytes / std::max<std::int64_t>(1, elems * width) * row_bytes;
}

// The two kinds of products share their loops: attention_product-inl.hpp makes `multiply` in each
// namespace from what is added for an element of a.
namespace singles {

HWY_ATTR HWY_INLINE void add_product(row_v a, row_v b, row_v& sum) {
    sum = hn::MulAdd(a, b, sum);
}

} // namespace singles

#define MASKWISE_PRODUCTS singles
#define MASKWISE_PRODUCT_ATTR HWY_ATTR
#include "kernel/attention_product-inl.hpp"
#undef MASKWISE_PRODUCT_ATTR
#undef MASKWISE_PRODUCTS

#if HWY_TARGET == HWY_AVX3 || MASKWISE_HAS_BF16_TABLE

#undef MASKWISE_PAIRS_ATTR
#if HWY_TARGET == HWY_AVX3
#define MASKWISE_PAIRS_ATTR __attribute__((target(HWY_TARGET_STR ",avx512bf16")))
#else
#define MASKWISE_PAIRS_ATTR HWY_ATTR
#endif
#define MASKWISE_PRODUCTS pairs
#define MASKWISE_PRODUCT_ATTR MASKWISE_PAIRS_ATTR

namespace pairs {

// The elements are two bf16 each. On ARM by assembly: GCC's functions belong to an architecture of
// their own, which is not that of Highway's where -mcpu names a newer one.
MASKWISE_PRODUCT_ATTR HWY_INLINE void add_product(row_v a, row_v b, row_v& sum) {
#if HWY_TARGET == HWY_AVX3
    sum.raw = _mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(b.raw),
                               reinterpret_cast<__m512bh>(a.raw));
#else
    asm(".arch_extension bf16\n\tbfdot %0.4s, %1.8h, %2.8h"
        : "+w"(sum.raw)
        : "w"(b.raw), "w"(a.raw));
#endif
}

} // namespace pairs

#include "kernel/attention_product-inl.hpp"
#undef MASKWISE_PRODUCT_ATTR
#undef MASKWISE_PRODUCTS

#endif

#if HWY_TARGET == HWY_AVX3
constexpr auto* multiply_pairs = pairs::multiply;
#else
constexpr void (*multiply_pairs)(const panel_product&) = nullptr; // of a table of their own
#endif

#include "kernel/attention_rows-inl.hpp"

constexpr attention_kernels attention{.panel = wide_panel::queries,
                                      .multiply_keys = singles::multiply,
                                      .multiply_values = singles::multiply,
                                      .multiply_key_pairs = multiply_pairs,
                                      .multiply_value_pairs = multiply_pairs,
                                      .weigh = panel_weigh<wide_panel>,
                                      .finish = panel_finish<wide_panel>,
                                      .exponentiate = panel_exponentiate<wide_panel>,
                                      .normalize = panel_normalize<wide_panel>,
                                      .merge = panel_merge,
                                      .join_sums = panel_join_sums,
                                      .load_rows = rows_as_f32,
                                      .load_pairs = rows_as_pairs,
                                      .load_queries = panel_load<wide_panel>,
                                      .load_panel = panel_load<wide_panel>,
                                      .load_conds = panel_load_conds<wide_panel>,
                                      .see_rows = see_rows,
                                      .largest_norm = largest_norm,
                                      .add_rows = panel_add_rows,
                                      .store_panel = panel_store};

#include "kernel/attention_few-inl.hpp"
#include "kernel/attention_tiles-inl.hpp"
