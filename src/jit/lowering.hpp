#pragma once

#include "jit/expression.hpp"
#include "kernel/contract.hpp"

#include <span>
#include <vector>

namespace maskwise::jit {

// How a value lies in a register: one f32 a lane; the element of dst's 16-bit type, its bits
// zero-extended to a lane; or a truth value.
enum class form : std::uint8_t { number, bits, truth };

enum class step_kind : std::uint8_t {
    load,    // input -> its form
    decode,  // bits of `type` -> number
    encode,  // number -> bits of `type`
    compute, // the node's operation; select on bits, too
};

// One instruction of the lowered expression; its value is numbered as the step is.
struct step {
    step_kind kind = step_kind::compute;
    form result = form::number;
    int node = -1;
    std::size_t input = 0; // load: which
    data_type type = data_type::undef;
    std::array<int, 3> arguments{-1, -1, -1}; // earlier steps
    // The last step that reads the value; none where the loop reads what is the same for the row.
    int last_use = -1;
    bool is_invariant = false; // the same for the whole row
};

// The steps that make dst's element; the last one's value is stored. Arithmetic asks for numbers;
// dst and the selects right before it ask for bits where dst's type has 16 and an input of that
// type may come through unchanged: f32 would make its signalling NaNs quiet.
std::vector<step> lower(const expression& what, std::span<const column_class> inputs);

} // namespace maskwise::jit
