// The tables of attention for one Highway target.

#if defined(MASKWISE_KERNEL_ATTENTION_ATTENTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_ATTENTION_INL
#undef MASKWISE_KERNEL_ATTENTION_ATTENTION_INL
#else
#define MASKWISE_KERNEL_ATTENTION_ATTENTION_INL
#endif

#include "kernel/attention/few-inl.hpp"
#include "kernel/attention/panel-inl.hpp"
#include "kernel/attention/product-inl.hpp"
#include "kernel/attention/quads-inl.hpp"
#include "kernel/attention/tiles-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3
constexpr auto* multiply_pairs = multiply<bf16_pair_product>;
#else
constexpr void (*multiply_pairs)(const panel_product&) = nullptr; // of a table of their own
#endif

constexpr attention_kernels attention{.panel = wide_panel::queries,
                                      .multiply_keys = multiply<f32_product>,
                                      .multiply_values = multiply<f32_product>,
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

// Of four queries a panel, and of one; with products of bf16, where the table has them.
#if HWY_TARGET == HWY_SCALAR
constexpr attention_kernels attention_of_few{}, attention_of_one{};
#elif HWY_TARGET == HWY_AVX3
constexpr attention_kernels attention_of_few =
    attention_by_few<few_panel<4>>(attention, multiply_rows<bf16_pair_product, row_type::f32>);
constexpr attention_kernels attention_of_one = attention_by_few<few_panel<1>>(
    attention, multiply_rows_by_one<bf16_pair_product, row_type::f32>);
#else
constexpr attention_kernels attention_of_few = attention_by_few<few_panel<4>>(attention, nullptr);
constexpr attention_kernels attention_of_one = attention_by_few<few_panel<1>>(attention, nullptr);
#endif

#if MASKWISE_HAS_BF16_TABLE

constexpr attention_kernels attention_by_quads() {
    attention_kernels made = attention;
    made.multiply_key_pairs = made.multiply_value_pairs = multiply_by_quads;
    return made;
}
constexpr attention_kernels attention_of_few_by_pairs =
    attention_by_few<few_panel<4>>(attention, multiply_rows<bf16_pair_product, row_type::f32>);
constexpr attention_kernels attention_of_one_by_pairs = attention_by_few<few_panel<1>>(
    attention, multiply_rows_by_one<bf16_pair_product, row_type::f32>);

#endif

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_ATTENTION_INL
