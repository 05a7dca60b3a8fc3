// Compiles the kernels once per instruction set of this architecture, and defines a table for each.
// choose_isa (base/cpu.hpp) chooses the table. Highway's dispatch is not used, because its choice
// is global to the process.

#include "kernel/kernel_table.hpp"
#include "kernel/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernel/attention/attention-inl.hpp"
#include "kernel/rows/rows-inl.hpp"
#include "kernel/select/pack-inl.hpp"
#include "kernel/select/pick-inl.hpp"
#include "kernel/select/select-inl.hpp"
#include "kernel/select/step-inl.hpp"
#include "kernel/select/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
constexpr isa this_target = isa::scalar;
#elif HWY_TARGET == HWY_SSE4
constexpr isa this_target = isa::sse4;
#elif HWY_TARGET == HWY_AVX2
constexpr isa this_target = isa::avx2;
#elif HWY_TARGET == HWY_AVX3
constexpr isa this_target = isa::avx512;
#elif HWY_TARGET == HWY_NEON
constexpr isa this_target = isa::neon;
#else
#error "a Highway target without a name in isa"
#endif

constexpr select_kernel selects[] = {
#define MASKWISE_SELECT_KERNEL(width, c, c_0, c_1, stores)                                         \
    {{width, column_class::c, column_class::c_0, column_class::c_1, store_policy::stores},         \
     select_tile_kernel<width, column_class::c, column_class::c_0, column_class::c_1,              \
                        store_policy::stores>},
#include "kernel/kernel_list.inc"
#undef MASKWISE_SELECT_KERNEL
};

constexpr pick_kernel picks[] = {
#define MASKWISE_PICK_KERNEL(width, c)                                                             \
    {{width, column_class::c}, pick_tile_kernel<width, column_class::c>},
#include "kernel/kernel_list.inc"
#undef MASKWISE_PICK_KERNEL
};

constexpr pack_kernel packs[] = {
#define MASKWISE_PACK_KERNEL(kind, unit) {{access_kind::kind, unit}, kind##_kernel<unit>},
#include "kernel/kernel_list.inc"
#undef MASKWISE_PACK_KERNEL
};

constexpr kernel_table table{
    this_target,          this_target,         selects, picks, packs, row_operations, attention,
    attention_panel_of_4, attention_panel_of_1};

#if HWY_TARGET == HWY_AVX3
constexpr kernel_table amx_table{isa::amx,
                                 this_target,
                                 selects,
                                 picks,
                                 packs,
                                 row_operations,
                                 attention_by_tiles<amx_tiles<16>>(attention),
                                 narrow_attention_by_tiles<amx_tiles<4>>(attention),
                                 narrow_attention_by_tiles<amx_tiles<1>>(attention)};
#endif

#if MASKWISE_HAS_BF16_TABLE
constexpr kernel_table bf16_table{isa::neon_bf16,
                                  this_target,
                                  selects,
                                  picks,
                                  packs,
                                  row_operations,
                                  attention_by_quads(),
                                  attention_panel_of_4_by_pairs,
                                  attention_panel_of_1_by_pairs};
#endif

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maskwise {

std::span<const kernel_table* const> kernel_tables() {
    static constexpr const kernel_table* tables[] = {
        &N_SCALAR::table,
#if HWY_ARCH_X86
        &N_SSE4::table,
        &N_AVX2::table,
        &N_AVX3::table,
        &N_AVX3::amx_table,
#elif HWY_ARCH_ARM
        &N_NEON::table,
#if MASKWISE_HAS_BF16_TABLE
        &N_NEON::bf16_table,
#endif
#endif
    };
    return tables;
}

} // namespace maskwise
#endif
