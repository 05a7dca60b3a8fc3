#pragma once

#include "base/cpu.hpp"

#include <vector>

namespace maskwise {

// What attention is tested on: every instruction set of this machine, and tiles in C++ anywhere.
inline std::vector<isa> attention_targets() {
    std::vector<isa> targets = supported_isas(native_cpu());
    targets.push_back(isa::emulated_amx);
    return targets;
}

} // namespace maskwise
