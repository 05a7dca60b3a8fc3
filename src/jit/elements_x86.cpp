// How elements enter and leave registers.

#include "jit/generator_x86.hpp"

namespace maskwise::jit {

using Xbyak::Address;
using Xbyak::Operand;
using Xbyak::Xmm;

void generator::load(const step& at, int to) {
    if (at.is_invariant) return load_still(at, to);
    if (is_partial_) return load_partial(at, to);
    const auto width = static_cast<std::uint32_t>(width_bytes(at.type));
    widen(at, to, element(at.input, width));
}

void generator::load_still(const step& at, int to) {
    mov(rax, pointer_field(at.input));
    const std::size_t width = width_bytes(at.type);
    if (width == 4) return vbroadcastss(v(to), dword[rax]);
    if (width == 2)
        movzx(eax, word[rax]);
    else
        movzx(eax, byte[rax]);
    if (at.result != form::truth) {
        vmovd(Xmm(to), eax);
        vpbroadcastd(v(to), Xmm(to));
        if (at.result == form::number) decode(to, to, at.type);
        return;
    }
    const scratch_register bytes(vector_pool());
    vmovd(Xmm(bytes.index()), eax);
    vpbroadcastd(v(bytes.index()), Xmm(bytes.index()));
    test_lanes(to, bytes.index());
}

// Elements as they lie in memory, or in the lower part of a register, to lanes.
void generator::widen(const step& at, int to, const Operand& from) {
    if (at.result == form::truth) {
        const scratch_register bytes(vector_pool());
        vpmovzxbd(v(bytes.index()), from);
        test_lanes(to, bytes.index());
    } else if (at.type == data_type::f32) {
        vmovups(v(to), from);
    } else if (at.result == form::number && at.type == data_type::f16) {
        vcvtph2ps(v(to), from);
    } else {
        vpmovzxwd(v(to), from);
        if (at.result == form::number) vpslld(v(to), v(to), 16);
    }
}

void generator::load_partial(const step& at, int to) {
    const auto width = static_cast<std::uint32_t>(width_bytes(at.type));
    const Address from = element(at.input, width);
    if (is_512() && width == 4) return vmovups(v(to) | k7 | T_z, from);
    if (is_512()) {
        const scratch_register narrow(vector_pool());
        const Xmm elements = width == 2 ? half_vector(narrow.index()) : Xmm(narrow.index());
        if (width == 2)
            vmovdqu16(elements | k7 | T_z, from);
        else
            vmovdqu8(elements | k7 | T_z, from);
        return widen(at, to, elements);
    }
    if (width == 4) {
        const scratch_register mask(vector_pool());
        load_mask(mask.index());
        return vmaskmovps(v(to), v(mask.index()), from);
    }
    copy_elements(slot(elements_slot), from, width);
    widen(at, to, slot(elements_slot));
}

void generator::load_mask(int to) {
    lea(rax, mask_table());
    mov(ebx, lanes());
    sub(rbx, rcx);
    vmovups(v(to), ptr[rax + rbx * 4]);
}

// One by one: AVX2 has no masked moves of less than 4 bytes.
void generator::copy_elements(const Address& to, const Address& from, std::uint32_t width) {
    Xbyak::Label next;
    lea(rbx, from);
    lea(rbp, to);
    mov(rax, rcx);
    L(next);
    if (width == 2) {
        movzx(ecx, word[rbx + rax * 2 - 2]);
        mov(word[rbp + rax * 2 - 2], cx);
    } else {
        movzx(ecx, byte[rbx + rax - 1]);
        mov(byte[rbp + rax - 1], cl);
    }
    dec(rax);
    jnz(next);
    mov(rcx, slot(count_slot));
}

void generator::store() {
    const step& root = steps_.back();
    const int value = register_of(static_cast<int>(steps_.size()) - 1);
    {
        const scratch_register scratch(vector_pool());
        const int elements = narrow(value, scratch.index());
        if (is_partial_)
            write_partial_elements(elements);
        else
            write_elements(elements);
    }
    if (!root.is_invariant) pool_of(root.result).give_back(value);
}

// The lanes of dst's element as they lie in memory, in the lower part of the register returned.
int generator::narrow(int from, int scratch) {
    if (result_width() == 4) return from;
    if (result_width() == 1) {
        vcvtps2dq(v(scratch), v(from));
        narrow_to_bytes(scratch, scratch, what_.result);
    } else if (steps_.back().result == form::bits) {
        narrow_to_half(scratch, from);
    } else if (what_.result == data_type::f16) {
        vcvtps2ph(half_vector(scratch), v(from), 0);
    } else {
        encode(scratch, from, what_.result);
        narrow_to_half(scratch, scratch);
    }
    return scratch;
}

void generator::write_elements(int from) {
    const Address to = element(dst_operand, result_width());
    const std::uint32_t bytes = lanes() * result_width();
    if (bytes == 8) return vmovq(to, Xmm(from));
    const Xmm elements(bytes == 64   ? Operand::ZMM
                       : bytes == 32 ? Operand::YMM
                                     : Operand::XMM,
                       from);
    if (streams_)
        vmovntps(to, elements);
    else
        vmovups(to, elements);
}

void generator::write_partial_elements(int from) {
    const Address to = element(dst_operand, result_width());
    if (is_512()) {
        if (result_width() == 4) return vmovups(to | k7, v(from));
        if (result_width() == 2) return vmovdqu16(to | k7, half_vector(from));
        return vmovdqu8(to | k7, Xmm(from));
    }
    if (result_width() == 4) {
        const scratch_register mask(vector_pool());
        load_mask(mask.index());
        return vmaskmovps(to, v(mask.index()), v(from));
    }
    vmovups(slot(elements_slot), Xmm(from));
    copy_elements(to, slot(elements_slot), result_width());
}

} // namespace maskwise::jit
