#pragma once

#include "common/bench_case.hpp"

#include <cstddef>
#include <span>

namespace maskwise::bench {

// What a case must move at least: whole cache lines of 64 bytes, each once. Of cond every line, of
// src_0 and src_1 only those that hold an element the mask selects.
struct needed_bytes {
    std::int64_t read = 0;
    std::int64_t written = 0;
};

// Writes cond, src_0, src_1 and expected into the case's folder, each as many bytes as the operand
// spans. Values are finite and not zero, so that an implementation that computes with them can be
// right; every bit of `expected` between dst's elements is 0x5a. Throws std::invalid_argument where
// an operand does not broadcast to dst or the mask is unknown, std::runtime_error on files.
needed_bytes make_data(const bench_case& c);

// Values of random signs and mantissas, finite and not zero.
void fill_values(std::span<std::byte> data, const std::string& dtype, std::uint64_t seed);

} // namespace maskwise::bench
