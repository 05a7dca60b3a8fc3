#include "limit/select_data.hpp"

#include "common/memory.hpp"
#include "limit/mask.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace maskwise::bench {
namespace {

constexpr std::byte untouched{0x5a};

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

void fill_values(std::span<std::byte> data, const std::string& dtype, std::uint64_t seed) {
    random_bits random(seed);
    for (; !data.empty(); data = data.subspan(std::min<std::size_t>(8, data.size()))) {
        const std::uint64_t bits = tame_bits(random(), dtype);
        std::memcpy(data.data(), &bits, std::min<std::size_t>(8, data.size()));
    }
}

needed_bytes make_data(const bench_case& c) {
    const std::int64_t width = width_bytes(c.dtype);
    const auto room = [](std::int64_t bytes, std::byte value = {}) {
        return std::vector<std::byte>(static_cast<std::size_t>(bytes), value);
    };
    auto cond = room(span_elems(c.cond)), src_0 = room(span_elems(c.src_0) * width),
         src_1 = room(span_elems(c.src_1) * width),
         expected = room(span_elems(c.dst) * width, untouched);
    fill_mask(c, cond.data());
    fill_values(src_0, c.dtype, c.seed + 1);
    fill_values(src_1, c.dtype, c.seed + 2);
    const walk reference(c, {cond.data(), src_0.data(), src_1.data(), expected.data()}, width);
    write_file(c.folder + "/cond", cond);
    write_file(c.folder + "/src_0", src_0);
    write_file(c.folder + "/src_1", src_1);
    write_file(c.folder + "/expected", expected);
    return reference.needed();
}

} // namespace maskwise::bench
