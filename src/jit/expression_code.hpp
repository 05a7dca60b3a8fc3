#pragma once

#include "base/cpu.hpp"
#include "jit/code_memory.hpp"
#include "jit/expression.hpp"
#include "kernel/contract.hpp"

#include <memory>
#include <span>

namespace maskwise::jit {

// Operands are numbered as the expression's inputs are; dst is the last.
inline constexpr std::size_t dst_operand = max_inputs;
inline constexpr std::size_t max_operands = max_inputs + 1;

// What a compiled expression is called with: rows x columns elements, both at least 1. Strides
// between rows are in bytes and may be 0 or negative; elements may lie at any address. The pointers
// are advanced by the call. It reads each input's elements of these rows once and nothing else, and
// writes dst's once. dst may be an input of the same type and row stride.
struct expression_tile {
    std::array<std::byte*, max_operands> at;
    std::array<std::int64_t, max_operands> row_bytes;
    std::int64_t rows;
    std::int64_t columns;
};
using expression_fn = void (*)(expression_tile*);

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
