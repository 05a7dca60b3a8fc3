#pragma once

#include "jit/expression.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace maskwise::test {

// What one value of an expression may be, in double precision: a range, since exp, tanh and sigmoid
// are allowed an error that the nodes behind them magnify. Everything else is exact, so without
// these the range is one number.
struct allowed {
    double least = 0, most = 0;
    bool is_exact = true;      // least is most, and its sign counts where it is 0
    bool is_anything = false;  // a range that no bound follows from
    std::optional<bool> truth; // of a truth value; unset where the range decides neither way
    std::optional<std::uint32_t> bits; // came from an input through selects alone
    data_type bits_type = data_type::undef;
};

// The units in the last place that the node may be off.
int tolerance_ulps(jit::node_kind kind);

// The last node's value for one element: `elements` has the bits of each input's.
allowed evaluate(const jit::expression& what, std::span<const std::uint32_t> elements);

// Empty where dst's bits are allowed, else what is wrong.
std::string complain(const allowed& expected, std::uint32_t actual, data_type type);

} // namespace maskwise::test
