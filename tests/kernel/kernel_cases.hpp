#pragma once

#include "kernel/kernel_table.hpp"

#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace maskwise::test {

// A test parameter: one kernel on one instruction set.
template <class Kernel>
struct kernel_case {
    isa target;
    Kernel kernel;

    std::string name() const {
        return std::string(maskwise::to_string(target)) + '_' + to_string(kernel.key);
    }
    // Without PrintTo, GoogleTest prints the bytes, including padding between members.
    friend void PrintTo(const kernel_case& problem, std::ostream* to) { *to << problem.name(); }
};

// All kernels of a list, for each instruction set of this machine that has separate kernels.
template <class Kernel>
std::vector<kernel_case<Kernel>> cases_of(std::span<const Kernel> kernel_table::*list) {
    std::vector<kernel_case<Kernel>> cases;
    for (const isa target : supported_isas(native_cpu())) {
        const kernel_table& table = kernel_table_for(target);
        if (table.target != table.base) continue;
        for (const Kernel& kernel : table.*list) cases.push_back({target, kernel});
    }
    return cases;
}

} // namespace maskwise::test
