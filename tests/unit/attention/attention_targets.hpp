#pragma once

#include "kernel/emulated_tables.hpp"

#include <string>
#include <vector>

namespace maskwise {

// The kernel tables that attention is tested with: every instruction set that this process may use,
// and emulated AMX tiles on the highest instruction set.
inline std::vector<const kernel_table*> attention_targets() {
    std::vector<const kernel_table*> targets;
    for (const isa target : supported_isas(native_cpu()))
        if (target != isa::amx || may_use_tiles()) targets.push_back(&kernel_table_for(target));
    targets.push_back(&test::emulated_tables().back());
    return targets;
}

inline std::string name_of(const kernel_table* target) {
    const bool is_emulated = target == &test::emulated_tables().back();
    return (is_emulated ? "emulated_" : "") + std::string(to_string(target->target));
}

} // namespace maskwise
