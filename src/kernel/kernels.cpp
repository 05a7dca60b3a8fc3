// Compiles the kernels once for each instruction set of this architecture and makes one table of
// each. The target is chosen from these tables by base/cpu.hpp, not by Highway's own dispatch:
// Highway's choice is one for the whole process and not Maskwise's to change.

// Targets that supported_isas() does not name are left out. EMU128 is given up for SCALAR, which
// needs no vector extension of the compiler.
#define HWY_COMPILE_ALL_ATTAINABLE
#define HWY_BROKEN_EMU128 1
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE2_128 | HWY_SVE_256)

#include "base/error.hpp"
#include "kernel/emulated_tiles.hpp"
#include "kernel/kernel_table.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/kernels.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Products of bf16 on ARM, in tables of their own. Of clang see base/cpu.cpp.
#define MASKWISE_HAS_BF16_TABLE (HWY_TARGET == HWY_NEON && !HWY_COMPILER_CLANG)

// Elements of 16 bytes travel as two lanes of 8.
template <std::size_t Width>
using lane_of = std::conditional_t<
    Width == 1, std::uint8_t,
    std::conditional_t<Width == 2, std::uint16_t,
                       std::conditional_t<Width == 4, std::uint32_t, std::uint64_t>>>;

inline HWY_ATTR const std::uint8_t* as_bytes(const std::byte* p) {
    return reinterpret_cast<const std::uint8_t*>(p);
}

inline HWY_ATTR bool element_is_true(const std::byte* cond) {
    return *as_bytes(cond) != 0;
}

// Parts of this file, once a target and in this order: each uses what is in front of it.
#include "kernel/pack_kernel-inl.hpp"
#include "kernel/pack_step-inl.hpp"
#include "kernel/pack_transpose-inl.hpp"
#include "kernel/pick_kernel-inl.hpp"
#include "kernel/row_kernel-inl.hpp"
#include "kernel/select_kernel-inl.hpp"

#include "kernel/attention_kernel-inl.hpp"
#if MASKWISE_HAS_BF16_TABLE
#include "kernel/attention_quads-inl.hpp"
#endif

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

constexpr kernel_table table{this_target, this_target, selects,          picks,           packs,
                             rows,        attention,   attention_of_few, attention_of_one};

#if HWY_TARGET == HWY_AVX3
constexpr kernel_table amx_table{
    isa::amx,         this_target,     selects, picks, packs, rows, attention_by_tiles<amx_tiles>(),
    attention_of_few, attention_of_one};
#endif

#if MASKWISE_HAS_BF16_TABLE
constexpr kernel_table bf16_table{isa::neon_bf16,
                                  this_target,
                                  selects,
                                  picks,
                                  packs,
                                  rows,
                                  attention_by_quads(),
                                  attention_of_few_by_pairs,
                                  attention_of_one_by_pairs};
#endif

constexpr kernel_table emulated_table{
    isa::emulated_amx,
    this_target,
    selects,
    picks,
    packs,
    rows,
    attention_by_tiles<emulated_tiles<static_cast<int>(tile_columns)>>(),
    attention_of_few,
    attention_of_one};

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maskwise {

std::span<const kernel_table* const> kernel_tables() {
    static constexpr const kernel_table* tables[] = {
        &N_SCALAR::table,
        &N_SCALAR::emulated_table,
#if HWY_ARCH_X86
        &N_SSE4::table,
        &N_SSE4::emulated_table,
        &N_AVX2::table,
        &N_AVX2::emulated_table,
        &N_AVX3::table,
        &N_AVX3::emulated_table,
        &N_AVX3::amx_table,
#elif HWY_ARCH_ARM
        &N_NEON::table,
        &N_NEON::emulated_table,
#if MASKWISE_HAS_BF16_TABLE
        &N_NEON::bf16_table,
#endif
#endif
    };
    return tables;
}

} // namespace maskwise
#endif
