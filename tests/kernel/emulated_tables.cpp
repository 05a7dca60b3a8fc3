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

inline void emulate_tiles(kernel_table& table) {
    constexpr auto columns = static_cast<int>(hn::MaxLanes(f32_tag()));
#if HWY_TARGET != HWY_SCALAR
    table.attention_panel_of_4 = narrow_attention_by_tiles<emulated_tiles<4>>(table.attention);
    table.attention_panel_of_1 = narrow_attention_by_tiles<emulated_tiles<1>>(table.attention);
#endif
    table.attention = attention_by_tiles<emulated_tiles<columns>>(table.attention);
}

} // namespace HWY_NAMESPACE
} // namespace maskwise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maskwise::test {
namespace {

void emulate_tiles(kernel_table& table) {
    switch (table.base) {
    case isa::scalar:
        return N_SCALAR::emulate_tiles(table);
#if HWY_ARCH_X86
    case isa::sse4:
        return N_SSE4::emulate_tiles(table);
    case isa::avx2:
        return N_AVX2::emulate_tiles(table);
    case isa::avx512:
        return N_AVX3::emulate_tiles(table);
#else
    case isa::neon:
        return N_NEON::emulate_tiles(table);
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
        emulate_tiles(tables.back());
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
