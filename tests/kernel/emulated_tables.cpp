#include "kernel/emulated_tables.hpp"

#include "kernel/emulated_tiles.hpp"
#include "kernel/targets.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/emulated_tables.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernel/attention/tiles-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace maskwise {
namespace HWY_NAMESPACE {

constexpr auto* with_emulated_tiles =
    attention_by_tiles<emulated_tiles<static_cast<int>(tile_columns)>>;

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maskwise::test {
namespace {

attention_kernels with_tiles(const kernel_table& table) {
    switch (table.base) {
    case isa::scalar:
        return N_SCALAR::with_emulated_tiles(table.attention);
#if HWY_ARCH_X86
    case isa::sse4:
        return N_SSE4::with_emulated_tiles(table.attention);
    case isa::avx2:
        return N_AVX2::with_emulated_tiles(table.attention);
    case isa::avx512:
        return N_AVX3::with_emulated_tiles(table.attention);
#else
    case isa::neon:
        return N_NEON::with_emulated_tiles(table.attention);
#endif
    default:
        throw argument_error("no emulated tiles for " + std::string(to_string(table.base)));
    }
}

std::vector<kernel_table> make_tables() {
    std::vector<kernel_table> tables;
    for (const isa target : supported_isas(native_cpu())) {
        const kernel_table& table = kernel_table_for(target);
        if (table.target != table.base) continue;
        tables.push_back(table);
        tables.back().target = isa::amx;
        tables.back().attention = with_tiles(table);
    }
    return tables;
}

} // namespace

const std::vector<kernel_table>& emulated_tables() {
    static const std::vector<kernel_table> tables = make_tables();
    return tables;
}

} // namespace maskwise::test
#endif
