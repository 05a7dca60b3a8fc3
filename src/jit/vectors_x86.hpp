#pragma once

#include "base/cpu.hpp"
#include "jit/registers.hpp"
#include "maskwise/maskwise.hpp"

#include <map>
#include <memory>
#include <xbyak/xbyak.h>

namespace maskwise::jit {

// One vocabulary for AVX2 and AVX-512: vectors of f32 lanes, and truth values, which are mask
// registers on AVX-512 and vectors of all-ones lanes on AVX2. Registers are numbers; dst registers
// are not argument registers unless it says so.
class vectors : public Xbyak::CodeGenerator {
public:
    vectors(isa target, void* code, std::size_t bytes);

    std::uint32_t lanes() const { return is_512_ ? 16 : 8; }
    bool is_512() const { return is_512_; }
    Xbyak::Xmm lane_vector(int index) const;
    // The lower half: a lane's 16 bits each.
    Xbyak::Xmm half_vector(int index) const;

    // A constant in all lanes, as the last operand of an instruction.
    Xbyak::Address constant(float value);
    Xbyak::Address constant_bits(std::uint32_t bits);
    void broadcast_bits(int dst, std::uint32_t bits);
    void broadcast(int dst, float value);
    // The first of 2 * lanes() lanes behind the code: all-ones, then all-zero.
    Xbyak::Address mask_table();
    // Behind the last instruction.
    void write_constants();

    enum comparison : std::uint8_t {
        unordered = 3,
        less = 0x11,
        greater_equal = 0x1D,
        greater = 0x1E
    };
    void compare(int truth, int a, const Xbyak::Operand& b, comparison how);
    // truth = any bit of the lane is set; lanes hold at most 31 bits.
    void test_lanes(int truth, int from);
    // dst = truth ? if_true : if_false, as bits. dst may be either.
    void blend(int dst, int truth, int if_true, int if_false);

    void round_to_whole(int dst, const Xbyak::Operand& from, bool down = false);
    // dst, from: numbers and bits of bf16 or f16.
    void encode(int dst, int from, data_type type);
    void decode(int dst, int from, data_type type); // dst may be from
    // Lower half of dst = the lower 16 bits of each lane. dst may be from.
    void narrow_to_half(int dst, int from);
    // Lower quarter of dst = the lower 8 bits of each lane, which hold -128 to 255. dst may be
    // from.
    void narrow_to_bytes(int dst, int from, data_type type);

    void exponential(int dst, int from);
    void hyperbolic_tangent(int dst, int from);
    void logistic(int dst, int from);

    register_pool& vector_pool() { return vector_pool_; }
    register_pool& truth_pool() { return is_512_ ? mask_pool_ : vector_pool_; }

private:
    void encode_bf16(int dst, int from);
    void scale_by_power(int dst, int exponent, int scratch);
    void polynomial(int dst, int at, std::initializer_list<float> coefficients);

    bool is_512_;
    register_pool vector_pool_;
    register_pool mask_pool_;
    std::map<std::uint32_t, Xbyak::Label> constants_;
    Xbyak::Label mask_table_;
};

} // namespace maskwise::jit
