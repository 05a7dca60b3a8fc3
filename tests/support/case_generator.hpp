#pragma once

#include "support/guarded_buffer.hpp"
#include "support/oracle.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>

namespace maskwise::test {

// Draws a case's random decisions from a fuzzer's bytes until they are used up, then from a seed.
class generator {
public:
    using result_type = std::uint64_t;

    explicit generator(std::uint64_t seed) : random_(seed) {}
    explicit generator(std::span<const std::uint8_t> bytes)
        : bytes_(bytes), random_(bytes.size()) {}

    static constexpr result_type min() { return 0; }
    static constexpr result_type max() { return UINT64_MAX; }
    result_type operator()() { return random_(); }

    // An integer in [least, most].
    std::int64_t draw(std::int64_t least, std::int64_t most);

private:
    std::span<const std::uint8_t> bytes_;
    std::mt19937_64 random_;
};

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

// Draws a Select of rank 0 to 6, sometimes up to 64, with any broadcast. Inputs may be permuted,
// padded, overlapping and backward. dst may be permuted, backward and with gaps. dst has up to
// about `most_elements` elements, sometimes none.
select_case make_case(generator& random, std::int64_t most_elements);

// Steps of make_case. draw_shape draws the rank and extents. draw_input draws an input: each extent
// is dst's or 1, and dst's first dimensions may be missing. lay_out draws strides without overlap.
std::vector<std::int64_t> draw_shape(generator& random, std::int64_t most_elements);
view draw_input(generator& random, const std::vector<std::int64_t>& dst, std::int64_t width_bytes);
void lay_out(generator& random, view& operand, std::int64_t width_bytes);

// Draws a Select of three or four dimensions of 10 to 150 elements. Every operand has all
// dimensions and is dense in a random order, so that a tile rarely covers a whole dimension.
select_case make_permuted_case(generator& random);

// Random bits, so that NaN payloads and both zeros occur.
void fill_random(generator& random, std::byte* data, std::size_t bytes);
// Writes a mask that is random, in runs, nearly constant or constant. true is any byte but 0.
void fill_mask(generator& random, std::byte* data, std::size_t bytes);

// Returns memory of random bits for an operand, next to a guard page. Sets operand.data.
guarded_buffer place(generator& random, view& operand, std::int64_t width_bytes);

std::string to_string(const select_case& c);

} // namespace maskwise::test
