// The tables of attention kernels for one Highway target.

#if defined(MASKWISE_KERNEL_ATTENTION_ATTENTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASKWISE_KERNEL_ATTENTION_ATTENTION_INL
#undef MASKWISE_KERNEL_ATTENTION_ATTENTION_INL
#else
#define MASKWISE_KERNEL_ATTENTION_ATTENTION_INL
#endif

#include "kernel/attention/bf16_quads-inl.hpp"
#include "kernel/attention/gradient-inl.hpp"
#include "kernel/attention/narrow_panel-inl.hpp"
#include "kernel/attention/panel-inl.hpp"
#include "kernel/attention/product-inl.hpp"
#include "kernel/attention/store-inl.hpp"
#include "kernel/attention/tiles-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3
constexpr auto* multiply_pairs = multiply<bf16_pair_product>;
#else
constexpr void (*multiply_pairs)(const panel_product&) = nullptr; // see attention_by_quads
#endif

constexpr attention_kernels attention{.panel = wide_panel::queries,
                                      .multiply_keys = multiply<f32_product>,
                                      .multiply_values = multiply<f32_product>,
                                      .multiply_key_pairs = multiply_pairs,
                                      .multiply_value_pairs = multiply_pairs,
                                      .softmax_update = panel_softmax_update<wide_panel>,
                                      .apply_mask = panel_apply_mask<wide_panel>,
                                      .exponentiate = panel_exponentiate<wide_panel>,
                                      .normalize = panel_normalize<wide_panel>,
                                      .merge = panel_merge,
                                      .accumulate_sums = panel_accumulate_sums,
                                      .load_rows = rows_as_f32,
                                      .load_pairs = rows_as_pairs,
                                      .load_queries = panel_load<wide_panel>,
                                      .load_panel = panel_load<wide_panel>,
                                      .write_slopes = panel_write_slopes<wide_panel>,
                                      .load_conds = panel_load_conds<wide_panel>,
                                      .update_range = update_range,
                                      .largest_norm = largest_norm,
                                      .add_rows = panel_add_rows,
                                      .store_panel = panel_store,
                                      .score_gradients = panel_score_gradients,
                                      .store_rows = rows_from_f32};

// Panels of four queries and of one query, with bf16 products if the instruction set has them.
#if HWY_TARGET == HWY_SCALAR
constexpr attention_kernels attention_panel_of_4{}, attention_panel_of_1{};
#elif HWY_TARGET == HWY_AVX3
constexpr attention_kernels attention_panel_of_4 = attention_by_narrow_panel<narrow_panel<4>>(
    attention, multiply_rows<bf16_pair_product, elem_type::f32>);
constexpr attention_kernels attention_panel_of_1 = attention_by_narrow_panel<narrow_panel<1>>(
    attention, multiply_rows_by_one<bf16_pair_product, elem_type::f32>);
#else
constexpr attention_kernels attention_panel_of_4 =
    attention_by_narrow_panel<narrow_panel<4>>(attention, nullptr);
constexpr attention_kernels attention_panel_of_1 =
    attention_by_narrow_panel<narrow_panel<1>>(attention, nullptr);
#endif

#if MASKWISE_HAS_BF16_TABLE

constexpr attention_kernels attention_by_quads() {
    attention_kernels kernels = attention;
    kernels.multiply_key_pairs = kernels.multiply_value_pairs = multiply_by_quads;
    return kernels;
}
constexpr attention_kernels attention_panel_of_4_by_pairs =
    attention_by_narrow_panel<narrow_panel<4>>(attention,
                                               multiply_rows<bf16_pair_product, elem_type::f32>);
constexpr attention_kernels attention_panel_of_1_by_pairs =
    attention_by_narrow_panel<narrow_panel<1>>(
        attention, multiply_rows_by_one<bf16_pair_product, elem_type::f32>);

#endif

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();
#endif // MASKWISE_KERNEL_ATTENTION_ATTENTION_INL
