#include "limit/select_data.hpp"

#include "common/memory.hpp"
#include "limit/mask.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace maskwise::bench {
namespace {

constexpr int untouched = 0x5a;

// Floating point: signs and mantissas are random, magnitudes in [1, 2), the same bits of two f32 or
// four 16-bit elements at a time. i64 has values of 31 bits: OpenVINO cuts longer ones off.
std::uint64_t tame_bits(std::uint64_t bits, const std::string& dtype) {
    if (dtype == "bool") return bits & 0x0101010101010101ULL;
    if (dtype == "i64") return bits & 0x7fffffffULL;
    if (dtype == "f32") return (bits & 0x807fffff807fffffULL) | 0x3f8000003f800000ULL;
    if (dtype == "bf16") return (bits & 0x807f807f807f807fULL) | 0x3f803f803f803f80ULL;
    return (bits & 0x83ff83ff83ff83ffULL) | 0x3c003c003c003c00ULL;
}

// Bytes between neighbours along each dimension of dst, 0 where the operand is repeated.
std::vector<std::int64_t> steps_bytes(const operand& o, const operand& dst, std::int64_t width) {
    const std::size_t rank = dst.extents.size(), own = o.extents.size();
    if (own > rank) throw std::invalid_argument("an operand has more dimensions than dst");
    std::vector<std::int64_t> steps(rank, 0);
    for (std::size_t d = 0; d < own; ++d) {
        const std::size_t at = rank - own + d;
        if (o.extents[d] == dst.extents[at])
            steps[at] = o.strides_elems[d] * width;
        else if (o.extents[d] != 1)
            throw std::invalid_argument("an operand does not broadcast to dst");
    }
    return steps;
}

// The reference: element by element, and the cache lines that it touches.
class walk {
public:
    walk(const bench_case& c, const std::array<std::byte*, 4>& data, std::int64_t width)
        : data_(data), width_(static_cast<std::size_t>(width)), extents_(c.dst.extents) {
        const std::array<const operand*, 4> operands{&c.cond, &c.src_0, &c.src_1, &c.dst};
        for (std::size_t o = 0; o < operands.size(); ++o) {
            const std::int64_t size = o == 0 ? 1 : width;
            steps_[o] = steps_bytes(*operands[o], c.dst, size);
            lines_[o].assign(static_cast<std::size_t>(span_elems(*operands[o]) * size / 64 + 1), 0);
        }
        visit(0, {});
    }

    needed_bytes needed() const { return {count(0) + count(1) + count(2), count(3)}; }

private:
    std::int64_t count(std::size_t o) const {
        return 64 * std::count(lines_[o].begin(), lines_[o].end(), 1);
    }

    void visit(std::size_t d, std::array<std::int64_t, 4> at) {
        if (d == extents_.size()) return visit_element(at);
        for (std::int64_t i = 0; i < extents_[d]; ++i) {
            if (d + 1 == extents_.size())
                visit_element(at);
            else
                visit(d + 1, at);
            for (std::size_t o = 0; o < 4; ++o) at[o] += steps_[o][d];
        }
    }

    void visit_element(const std::array<std::int64_t, 4>& at) {
        const std::size_t side = data_[0][at[0]] != std::byte{0} ? 1 : 2;
        std::byte* const to = data_[3] + at[3];
        const std::byte* const from = data_[side] + at[side];
        std::memcpy(to, from, width_);
        for (const std::size_t o : {std::size_t{0}, side, std::size_t{3}})
            lines_[o][static_cast<std::size_t>(at[o] / 64)] = 1;
    }

    std::array<std::byte*, 4> data_;
    std::size_t width_;
    std::vector<std::int64_t> extents_;
    std::array<std::vector<std::int64_t>, 4> steps_;
    std::array<std::vector<char>, 4> lines_;
};

} // namespace

void fill_values(std::byte* data, std::int64_t bytes, const std::string& dtype,
                 std::uint64_t seed) {
    random_bits random(seed);
    for (std::int64_t at = 0; at < bytes; at += 8) {
        const std::uint64_t bits = tame_bits(random(), dtype);
        std::memcpy(data + at, &bits,
                    static_cast<std::size_t>(std::min<std::int64_t>(8, bytes - at)));
    }
}

needed_bytes make_data(const bench_case& c) {
    const std::int64_t width = width_bytes(c.dtype);
    const std::array<std::int64_t, 4> bytes{span_elems(c.cond), span_elems(c.src_0) * width,
                                            span_elems(c.src_1) * width, span_elems(c.dst) * width};
    const shared_file cond(c.folder + "/cond", bytes[0], true),
        src_0(c.folder + "/src_0", bytes[1], true), src_1(c.folder + "/src_1", bytes[2], true),
        expected(c.folder + "/expected", bytes[3], true);
    fill_mask(c, cond.data());
    fill_values(src_0.data(), bytes[1], c.dtype, c.seed + 1);
    fill_values(src_1.data(), bytes[2], c.dtype, c.seed + 2);
    std::memset(expected.data(), untouched, static_cast<std::size_t>(bytes[3]));
    return walk(c, {cond.data(), src_0.data(), src_1.data(), expected.data()}, width).needed();
}

} // namespace maskwise::bench
