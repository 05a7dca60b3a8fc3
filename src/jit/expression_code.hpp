#pragma once

#include "base/cpu.hpp"
#include "jit/code_memory.hpp"
#include "jit/expression_tile.hpp"
#include "kernel/contract.hpp"

#include <memory>
#include <span>
#include <string>

namespace maskwise::jit {

// Machine code for an expression on one instruction set; immutable, any number of threads may run
// it. Its memory is freed with it.
class expression_code {
public:
    expression_code(std::span<const std::byte> code, const std::string& name)
        : memory_(code, name) {}

    expression_fn run() const { return reinterpret_cast<expression_fn>(memory_.address()); }
    const code_memory& memory() const { return memory_; }

private:
    code_memory memory_;
};

// Whether code for `target` can be made: avx2 and avx512, where this CPU has them and the system
// lets new code be executed.
bool can_compile(isa target);

// One loop over a row; `inputs` says of each input whether it steps along the row by one element or
// stands still, `stores` how dst is written. Throws invalid_argument where the expression is not
// valid, needs more registers than there are, or can_compile(target) is false.
std::shared_ptr<const expression_code> compile(const expression& what,
                                               std::span<const column_class> inputs,
                                               store_policy stores, isa target);

} // namespace maskwise::jit
