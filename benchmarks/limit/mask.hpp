#pragma once

#include "common/bench_case.hpp"

#include <cstddef>

namespace maskwise::bench {

// splitmix64: the same bits on every machine.
class random_bits {
public:
    explicit random_bits(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
    std::uint64_t operator()() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    // A number of [least, most].
    std::int64_t draw(std::int64_t least, std::int64_t most) {
        const auto count = static_cast<std::uint64_t>(most - least) + 1;
        return least + static_cast<std::int64_t>((*this)() % count);
    }

private:
    std::uint64_t state_;
};

// Writes cond's bytes, 0 and 1. Masks, where rows and columns are cond's last two dimensions and a
// matrix is one index of the others:
//   random, random:<p>   each element true with probability p (0.5)
//   causal               column <= row + (columns - rows): what comes later is masked
//   padding              a random length of each matrix: true left of it
//   true, false          all the same
//   runs                 runs of 500 to 1000 equal elements
//   banded               |column - row| < 8
//   one_row              one element of the first dimension is true
// Throws std::invalid_argument on another mask.
void fill_mask(const bench_case& c, std::byte* cond);

} // namespace maskwise::bench
