#include "jit/generator_x86.hpp"

#include <algorithm>
#include <utility>

namespace maskwise::jit {

using Xbyak::Reg64;

generator::generator(const expression& what, std::span<const column_class> inputs,
                     store_policy stores, isa target, std::span<std::byte> code)
    : vectors(target, code.data(), code.size()), what_(what), inputs_(inputs),
      steps_(lower(what, inputs)),
      // Less than 16 bytes cannot be streamed.
      streams_(stores == store_policy::stream && lanes() * result_width() >= 16),
      pointers_{rdx, r8, r9, r10, r11, r12, r13, r14, r15}, registers_(steps_.size(), -1) {}

std::size_t generator::generate() {
    Xbyak::Label row;
    enter();
    L(row);
    prepare_row();
    write_row();
    advance_row();
    dec(field(offsetof(expression_tile, rows)));
    jnz(row, T_NEAR);
    leave();
    write_partial();
    write_constants();
    return getSize();
}

void generator::enter() {
    for (const Reg64& saved : {rbx, rbp, r12, r13, r14, r15}) push(saved);
    sub(rsp, stack_bytes);
}

void generator::leave() {
    vzeroupper();
    add(rsp, stack_bytes);
    for (const Reg64& saved : {r15, r14, r13, r12, rbp, rbx}) pop(saved);
    ret();
}

void generator::prepare_row() {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
        if (inputs_[i] == column_class::unit) mov(pointers_[i], pointer_field(i));
    mov(pointers_[dst_operand], pointer_field(dst_operand));
    write_steps(true);
    xor_(esi, esi);
}

void generator::write_row() {
    Xbyak::Label rest, done, misaligned;
    if (streams_) {
        mov(rax, pointers_[dst_operand]);
        test(al, result_width() - 1);
        jnz(misaligned, T_NEAR); // elements straddle every boundary
        write_head();
        write_loop(true);
        jmp(rest, T_NEAR);
        L(misaligned);
    }
    write_loop(false);
    L(rest);
    mov(rcx, field(offsetof(expression_tile, columns)));
    sub(rcx, rsi);
    jz(done);
    call(partial_);
    L(done);
}

// rax holds dst.
void generator::write_head() {
    Xbyak::Label aligned;
    const std::uint32_t vector_bytes = lanes() * result_width();
    neg(rax);
    and_(eax, vector_bytes - 1);
    jz(aligned);
    if (result_width() > 1) shr(eax, result_width() == 4 ? 2 : 1);
    mov(rcx, field(offsetof(expression_tile, columns)));
    cmp(rcx, rax);
    cmova(rcx, rax);
    call(partial_);
    L(aligned);
}

// From column rsi on, in whole vectors.
void generator::write_loop(bool streams) {
    Xbyak::Label loop, done;
    mov(rax, field(offsetof(expression_tile, columns)));
    sub(rax, rsi);
    and_(rax, 0U - lanes());
    jz(done, T_NEAR);
    add(rax, rsi);
    mov(slot(whole_end_slot), rax);
    const bool stays = std::exchange(streams_, streams);
    L(loop);
    write_steps(false);
    store();
    add(rsi, lanes());
    cmp(rsi, slot(whole_end_slot));
    jb(loop, T_NEAR);
    streams_ = stays;
    L(done);
}

void generator::advance_row() {
    const auto advance = [&](std::size_t operand) {
        mov(rax, field(offsetof(expression_tile, row_bytes) + 8 * operand));
        add(pointer_field(operand), rax);
    };
    for (std::size_t i = 0; i < inputs_.size(); ++i) advance(i);
    advance(dst_operand);
}

// The next rcx columns, fewer than a vector has.
void generator::write_partial() {
    is_partial_ = true;
    L(partial_);
    if (is_512()) {
        mov(eax, 1);
        shl(eax, cl);
        dec(eax);
        kmovd(k7, eax);
    } else {
        mov(slot(count_slot), rcx);
    }
    write_steps(false);
    store();
    add(rsi, rcx);
    ret();
    is_partial_ = false;
}

void generator::write_steps(bool invariant) {
    for (std::size_t i = 0; i < steps_.size(); ++i)
        if (steps_[i].is_invariant == invariant) write_step(i);
}

void generator::write_step(std::size_t number) {
    const step& at = steps_[number];
    const int to = pool_of(at.result).take();
    registers_[number] = to;
    const auto argument = [&](std::size_t i) {
        return at.arguments[i] < 0 ? -1 : register_of(at.arguments[i]);
    };
    switch (at.kind) {
    case step_kind::load:
        load(at, to);
        break;
    case step_kind::decode:
        decode(to, argument(0), at.type);
        break;
    case step_kind::encode:
        encode(to, argument(0), at.type);
        break;
    case step_kind::compute:
        compute({to,
                 {argument(0), argument(1), argument(2)},
                 what_.nodes[static_cast<std::size_t>(at.node)]});
        break;
    }
    release(number);
}

// An argument that stands twice is given back twice, which is once.
void generator::release(std::size_t number) {
    for (const int value : steps_[number].arguments) {
        if (value < 0) continue;
        const step& used = steps_[static_cast<std::size_t>(value)];
        if (used.last_use == static_cast<int>(number))
            pool_of(used.result).give_back(register_of(value));
    }
}

} // namespace maskwise::jit
