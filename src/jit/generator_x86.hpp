// Lowered expressions to x86-64. The code is
//
//   for each row: load pointers, compute what is the same for the whole row
//       [up to dst's first whole vector: the partial body, where stores are streamed]
//       loop over whole vectors: the body
//       the rest of the row: the partial body
//
// and the body is the steps one by one, each value in a register from its step to its last use.
#pragma once

#include "jit/expression_tile.hpp"
#include "jit/lowering.hpp"
#include "jit/vectors_x86.hpp"
#include "kernel/contract.hpp"

#include <cstddef>
#include <span>

namespace maskwise::jit {

// One node's operation on registers.
struct operation {
    int to;
    std::array<int, 3> from;
    const node& what;
};

// rdi tile, rsi column, rcx columns of a partial body, rdx and r8 to r15 moving operands, the
// others scratch.
class generator : public vectors {
public:
    generator(const expression& what, std::span<const column_class> inputs, store_policy stores,
              isa target, std::span<std::byte> code);

    // Returns the bytes written.
    std::size_t generate();

private:
    // On the stack: elements on their way (AVX2 only), then two numbers.
    static constexpr std::uint32_t elements_slot = 0;
    static constexpr std::uint32_t whole_end_slot = 32;
    static constexpr std::uint32_t count_slot = 40;
    static constexpr std::uint32_t stack_bytes = 64;

    void enter();
    void leave();
    void prepare_row();
    void write_row();
    void write_head();
    void write_loop(bool streams);
    void advance_row();
    void write_partial();
    void write_steps(bool invariant);
    void write_step(std::size_t number);
    void release(std::size_t number);

    void load(const step& at, int to);
    void load_still(const step& at, int to);
    void widen(const step& at, int to, const Xbyak::Operand& from);
    void load_partial(const step& at, int to);
    void compute(const operation& o);
    void store();
    int narrow(int from, int scratch);
    void write_elements(int from);
    void write_partial_elements(int from);
    void load_mask(int to);
    void copy_elements(const Xbyak::Address& to, const Xbyak::Address& from, std::uint32_t width);

    // One function for each entry of node_kinds.inc.
#define MASKWISE_NODE(name, arguments) void emit_##name(const operation& o);
#include "jit/node_kinds.inc"
#undef MASKWISE_NODE

    Xbyak::Xmm v(int index) const {
        return lane_vector(index);
    }
    register_pool& pool_of(form which) {
        return which == form::truth ? truth_pool() : vector_pool();
    }
    int register_of(int value) const {
        return registers_[static_cast<std::size_t>(value)];
    }
    std::uint32_t result_width() const {
        return static_cast<std::uint32_t>(width_bytes(what_.result));
    }
    Xbyak::Address element(std::size_t operand, std::uint32_t width) {
        return ptr[pointers_[operand] + rsi * static_cast<int>(width)];
    }
    Xbyak::Address field(std::size_t offset) {
        return qword[rdi + offset];
    }
    Xbyak::Address pointer_field(std::size_t operand) {
        return field(offsetof(expression_tile, at) + 8 * operand);
    }
    // Slots stand one return address higher while the partial body runs.
    Xbyak::Address slot(std::uint32_t offset) {
        return ptr[rsp + offset + (is_partial_ ? 8U : 0U)];
    }

    const expression& what_;
    std::span<const column_class> inputs_;
    std::vector<step> steps_;
    bool streams_;
    bool is_partial_ = false;
    std::array<Xbyak::Reg64, max_operands> pointers_;
    std::vector<int> registers_;
    Xbyak::Label partial_;
};

} // namespace maskwise::jit
