#pragma once

#include "maskwise/maskwise.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace maskwise::jit {

enum class node_kind : std::uint8_t {
    input,
    constant,
#define MASKWISE_NODE(name, arguments) name,
#include "jit/node_kinds.inc"
#undef MASKWISE_NODE
};

// One value of an expression. Numbers are f32, whatever the type of the elements they come from;
// each node rounds once. A boolean input and greater_equal are truth values, which only the first
// argument of select takes.
//   input          type: boolean, f32, bf16 or f16
//   constant       alpha
//   add .. divide  as IEEE 754 has them
//   maximum        a > b ? a : b      minimum  a < b ? a : b      (b where either is a NaN)
//   abs, square, sqrt, and exp, tanh, sigmoid at most 2 units in the last place off
//   relu           x > 0 ? x : 0      leaky_relu  x > 0 ? x : alpha x
//   clamp          minimum(maximum(x, alpha), beta)
//   greater_equal  a >= b, false for NaNs
//   select         a ? b : c; moves bits: see expression
//   type_cast      x rounded to type (f32, bf16 or f16), nearest even
//   quantize       x / alpha + beta rounded to nearest even and cut to type's range (i8 or u8); a
//                  NaN gives its lowest value
struct node {
    node_kind kind = node_kind::input;
    std::array<int, 3> arguments{-1, -1, -1}; // numbers of earlier nodes
    data_type type = data_type::undef;
    float alpha = 0.0F;
    float beta = 0.0F;
};

inline constexpr std::size_t max_inputs = 8;
inline constexpr std::size_t max_nodes = 64;

// dst = the last node, element by element; arguments stand before the nodes that use them. Inputs
// are numbered in the order of their nodes. `result` is the type of dst: f32, bf16, f16, or the i8
// or u8 of the quantize nodes that the value comes from.
// An element that reaches dst from an input of dst's type through selects alone keeps its bits, NaN
// payloads and -0.0 included.
struct expression {
    std::vector<node> nodes;
    data_type result = data_type::undef;

    int add(const node& next) {
        nodes.push_back(next);
        return static_cast<int>(nodes.size()) - 1;
    }
};

std::size_t argument_count(node_kind kind);
std::string_view to_string(node_kind kind);

// Throws invalid_argument with the node in the text where the expression is not as described.
void validate(const expression& what);

// "0=input():f32 1=constant(0.5) 2=add(0,1) 3=input():boolean 4=select(3,2,0) -> f32"
std::string to_string(const expression& what);

} // namespace maskwise::jit
