#include "jit/vectors_x86.hpp"

#include <bit>

namespace maskwise::jit {

using Xbyak::Address;
using Xbyak::Operand;
using Xbyak::Xmm;

namespace {

constexpr std::uint32_t sign_bit = 0x80000000U;
constexpr std::uint32_t magnitude_bits = 0x7FFFFFFFU;
constexpr int table_lanes = 8;

} // namespace

// k7 is the mask of the lanes in use, k0 none.
vectors::vectors(isa target, void* code, std::size_t bytes)
    : Xbyak::CodeGenerator(bytes, code), is_512_(target == isa::avx512),
      vector_pool_("vector", 0, is_512_ ? 32 : 16), mask_pool_("mask", 1, 6) {}

Xmm vectors::lane_vector(int index) const {
    return {is_512_ ? Operand::ZMM : Operand::YMM, index};
}

Xmm vectors::half_vector(int index) const {
    return {is_512_ ? Operand::YMM : Operand::XMM, index};
}

Address vectors::constant(float value) {
    return constant_bits(std::bit_cast<std::uint32_t>(value));
}

Address vectors::constant_bits(std::uint32_t bits) {
    const Xbyak::Label& label = constants_[bits];
    return is_512_ ? ptr_b[rip + label] : ptr[rip + label];
}

void vectors::broadcast_bits(int dst, std::uint32_t bits) {
    vbroadcastss(lane_vector(dst), dword[rip + constants_[bits]]);
}

void vectors::broadcast(int dst, float value) {
    broadcast_bits(dst, std::bit_cast<std::uint32_t>(value));
}

Address vectors::mask_table() {
    return ptr[rip + mask_table_];
}

// AVX2 has no operands that broadcast, so each constant fills a vector there.
void vectors::write_constants() {
    align(64);
    for (auto& [bits, label] : constants_) {
        L(label);
        for (int i = 0; i < (is_512_ ? 1 : table_lanes); ++i) dd(bits);
    }
    L(mask_table_);
    if (is_512_) return;
    for (int i = 0; i < 2 * table_lanes; ++i) dd(i < table_lanes ? 0xFFFFFFFFU : 0);
}

void vectors::compare(int truth, int a, const Operand& b, comparison how) {
    if (is_512_)
        vcmpps(Xbyak::Opmask(truth), lane_vector(a), b, how);
    else
        vcmpps(lane_vector(truth), lane_vector(a), b, how);
}

void vectors::test_lanes(int truth, int from) {
    if (is_512_) return vptestmd(Xbyak::Opmask(truth), lane_vector(from), lane_vector(from));
    vpxor(lane_vector(truth), lane_vector(truth), lane_vector(truth));
    vpcmpgtd(lane_vector(truth), lane_vector(from), lane_vector(truth));
}

void vectors::blend(int dst, int truth, int if_true, int if_false) {
    if (is_512_)
        vblendmps(lane_vector(dst) | Xbyak::Opmask(truth), lane_vector(if_false),
                  lane_vector(if_true));
    else
        vblendvps(lane_vector(dst), lane_vector(if_false), lane_vector(if_true),
                  lane_vector(truth));
}

// 8 is nearest even, 9 down, both without the inexact flag.
void vectors::round_to_whole(int dst, const Operand& from, bool down) {
    const std::uint8_t how = down ? 9 : 8;
    if (is_512_)
        vrndscaleps(lane_vector(dst), from, how);
    else
        vroundps(lane_vector(dst), from, how);
}

void vectors::narrow_to_half(int dst, int from) {
    if (is_512_) return vpmovdw(half_vector(dst), lane_vector(from));
    vpackusdw(lane_vector(dst), lane_vector(from), lane_vector(from));
    vpermq(Xbyak::Ymm(dst), Xbyak::Ymm(dst), 0x08); // the two lower quarters of each 128 bits
}

void vectors::narrow_to_bytes(int dst, int from, data_type type) {
    if (is_512_) return vpmovdb(Xmm(dst), lane_vector(from));
    vpackssdw(lane_vector(dst), lane_vector(from), lane_vector(from));
    vpermq(Xbyak::Ymm(dst), Xbyak::Ymm(dst), 0x08);
    if (type == data_type::i8)
        vpacksswb(Xmm(dst), Xmm(dst), Xmm(dst));
    else
        vpackuswb(Xmm(dst), Xmm(dst), Xmm(dst));
}

void vectors::encode(int dst, int from, data_type type) {
    if (type == data_type::bf16) return encode_bf16(dst, from);
    vcvtps2ph(half_vector(dst), lane_vector(from), 0);
    vpmovzxwd(lane_vector(dst), half_vector(dst));
}

// Nearest even by adding just under half a unit; NaNs stay NaNs and become quiet. Not the
// instruction of AVX512_BF16, which takes denormals for zero.
void vectors::encode_bf16(int dst, int from) {
    const scratch_register high(vector_pool_), is_nan(truth_pool());
    const Xmm d = lane_vector(dst), h = lane_vector(high.index());
    vpsrld(h, lane_vector(from), 16);
    vandps(d, h, constant_bits(1));
    vpaddd(d, d, constant_bits(0x7FFF));
    vpaddd(d, d, lane_vector(from));
    vpsrld(d, d, 16);
    vorps(h, h, constant_bits(0x40));
    compare(is_nan.index(), from, lane_vector(from), unordered);
    blend(dst, is_nan.index(), high.index(), dst);
}

void vectors::decode(int dst, int from, data_type type) {
    if (type == data_type::bf16) return vpslld(lane_vector(dst), lane_vector(from), 16);
    narrow_to_half(dst, from);
    vcvtph2ps(lane_vector(dst), half_vector(dst));
}

// Coefficients of the highest power first.
void vectors::polynomial(int dst, int at, std::initializer_list<float> coefficients) {
    bool is_first = true;
    for (const float each : coefficients) {
        if (is_first)
            broadcast(dst, each);
        else
            vfmadd213ps(lane_vector(dst), lane_vector(at), constant(each));
        is_first = false;
    }
}

// In two halves on AVX2, since the power itself may be beyond what f32 holds.
void vectors::scale_by_power(int dst, int exponent, int scratch) {
    const Xmm d = lane_vector(dst), e = lane_vector(exponent), s = lane_vector(scratch);
    if (is_512_) return vscalefps(d, d, e);
    vmulps(s, e, constant(0.5F));
    round_to_whole(scratch, s, true);
    vsubps(e, e, s);
    for (const Xmm& half : {s, e}) {
        vcvtps2dq(half, half);
        vpaddd(half, half, constant_bits(127));
        vpslld(half, half, 23);
        vmulps(d, d, half);
    }
}

// e^x = 2^n e^r with n the nearest whole number to x / ln 2 and |r| <= ln 2 / 2. ln 2 is subtracted
// in two parts, of which the first times n is exact. The polynomial is Cephes' expf. Beyond the
// bounds the result is infinity or 0 anyhow.
void vectors::exponential(int dst, int from) {
    const scratch_register power(vector_pool_), rest(vector_pool_);
    const Xmm d = lane_vector(dst), n = lane_vector(power.index()), r = lane_vector(rest.index());
    broadcast(power.index(), -105.0F);
    vmaxps(n, n, lane_vector(from)); // NaNs are taken from the second operand
    broadcast(rest.index(), 89.0F);
    vminps(r, r, n);
    vmulps(n, r, constant(1.44269504088896341F));
    round_to_whole(power.index(), n);
    vfnmadd231ps(r, n, constant(0.693359375F));
    vfnmadd231ps(r, n, constant(-2.12194440e-4F));
    polynomial(dst, rest.index(),
               {1.9875691500e-4F, 1.3981999507e-3F, 8.3334519073e-3F, 4.1665795894e-2F,
                1.6666665459e-1F, 5.0000001201e-1F});
    vmulps(d, d, r);
    vfmadd213ps(d, r, r);
    vaddps(d, d, constant(1.0F));
    scale_by_power(dst, power.index(), rest.index());
}

// Near 0 a polynomial (Cephes' tanhf), elsewhere 1 - 2 / (e^2|x| + 1); the sign is put back at the
// end.
void vectors::hyperbolic_tangent(int dst, int from) {
    const scratch_register size(vector_pool_), near(vector_pool_), is_near(truth_pool());
    const Xmm d = lane_vector(dst), a = lane_vector(size.index()), p = lane_vector(near.index());
    vandps(a, lane_vector(from), constant_bits(magnitude_bits));
    vaddps(p, a, a);
    exponential(dst, near.index());
    vaddps(d, d, constant(1.0F));
    broadcast(near.index(), 2.0F);
    vdivps(d, p, d);
    broadcast(near.index(), 1.0F);
    vsubps(d, p, d);
    {
        const scratch_register square(vector_pool_);
        const Xmm z = lane_vector(square.index());
        vmulps(z, a, a);
        polynomial(near.index(), square.index(),
                   {-5.70498872745e-3F, 2.06390887954e-2F, -5.37397155531e-2F, 1.33314422036e-1F,
                    -3.33332819422e-1F});
        vmulps(p, p, z);
        vfmadd213ps(p, a, a);
    }
    compare(is_near.index(), size.index(), constant(0.625F), less);
    blend(dst, is_near.index(), near.index(), dst);
    vandps(a, lane_vector(from), constant_bits(sign_bit));
    vorps(d, d, a);
}

// e^-|x| never overflows: 1 / (1 + e^-|x|) on the right of 0, e^-|x| / (1 + e^-|x|) on its left.
void vectors::logistic(int dst, int from) {
    const scratch_register power(vector_pool_), top(vector_pool_), is_left(truth_pool());
    const Xmm d = lane_vector(dst), e = lane_vector(power.index());
    vorps(d, lane_vector(from), constant_bits(sign_bit));
    exponential(power.index(), dst);
    broadcast(top.index(), 1.0F);
    vaddps(d, e, lane_vector(top.index()));
    compare(is_left.index(), from, constant_bits(0), less);
    blend(top.index(), is_left.index(), power.index(), top.index());
    vdivps(d, lane_vector(top.index()), d);
}

} // namespace maskwise::jit
