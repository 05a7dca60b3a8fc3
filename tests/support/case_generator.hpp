#pragma once

#include "support/guarded_buffer.hpp"
#include "support/oracle.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>

namespace maskwise::test {

// The source of a case's random decisions: a fuzzer's bytes until they are used up, then random
// numbers of a seed.
class generator {
public:
    using result_type = std::uint64_t;

    explicit generator(std::uint64_t seed) : random_(seed) {}
    explicit generator(std::span<const std::uint8_t> bytes)
        : bytes_(bytes), random_(bytes.size()) {}

    static constexpr result_type min() { return 0; }
    static constexpr result_type max() { return UINT64_MAX; }
    result_type operator()() { return random_(); }

    // A whole number in [least, most].
    std::int64_t draw(std::int64_t least, std::int64_t most);

private:
    std::span<const std::uint8_t> bytes_;
    std::mt19937_64 random_;
};

// A whole number in [least, most].
std::int64_t draw(generator& random, std::int64_t least, std::int64_t most);
bool one_in(generator& random, int n);
double draw_number(generator& random, double least, double end); // in [least, end)

// The seed of this run: MASKWISE_TEST_SEED, or a fixed number.
std::uint64_t base_seed();

// Layouts of one Select; data pointers are unset. Inputs broadcast one-way to dst.
struct select_case {
    std::int64_t width_bytes = 4;
    view cond, src_0, src_1, dst;
    int in_place = -1; // 0 or 1: dst has that source's layout and buffer
};

// Ranks 0 to 6, sometimes up to 64. Every broadcast class. Inputs are permuted, padded, overlapping
// and backward, dst permuted, backward and with gaps. Up to about `most_elements` elements of dst,
// sometimes none.
select_case make_case(generator& random, std::int64_t most_elements);

// Steps of drawing a case. draw_shape: as above. draw_input: each extent is dst's or 1, rarely
// without dst's first dimensions; strides as above. lay_out: strides without overlap for the
// extents.
std::vector<std::int64_t> draw_shape(generator& random, std::int64_t most_elements);
view draw_input(generator& random, const std::vector<std::int64_t>& dst, std::int64_t width_bytes);
void lay_out(generator& random, view& operand, std::int64_t width_bytes);

// Three or four dimensions of tens of elements. Operands have all dimensions, and each is dense in
// its own order, so that no tile holds a whole loop of all operands.
select_case make_permuted_case(generator& random);

// Random bits, so that NaN payloads and both zeros occur.
void fill_random(generator& random, std::byte* data, std::size_t bytes);
// A mask: random, runs, nearly constant, constant; true is any byte but 0.
void fill_mask(generator& random, std::byte* data, std::size_t bytes);

// Memory of random bits for an operand, against one of its guards; sets operand.data.
guarded_buffer place(generator& random, view& operand, std::int64_t width_bytes);

// All facts of a failing case.
std::string to_string(const select_case& c);

} // namespace maskwise::test
