#pragma once

#include "attention_inputs.hpp"

#include <cstdint>
#include <vector>

namespace maskwise::ort {

// Elements of queries and keys are rotated in pairs, by angles that say where a row stands. The
// first 2 * pairs elements of each row are: neighbours with each other, or else each of the first
// half with its counterpart in the second.
struct rotary_positions {
    const float *cosines = nullptr, *sines = nullptr; // dense {positions, pairs}
    std::int64_t pairs = 0;
    bool neighbours = false;
    // Of each row, dense {sequences, rows}; where null, of the first row of each sequence.
    const std::int64_t* each = nullptr;
    std::vector<std::int64_t> first = {};
    std::int64_t rows = 0; // of a sequence

    std::int64_t position(std::int64_t sequence, std::int64_t row) const {
        return each != nullptr ? each[sequence * rows + row]
                               : first[static_cast<std::size_t>(sequence)] + row;
    }
};

// Of a call of GroupQueryAttention.
struct rotary_call {
    const attention_inputs& in;
    dims queries;                               // {sequences, heads, rows, depth}
    std::int64_t longest = 0;                   // of the sequences, in keys
    bool begins = false;                        // a prompt without a past
    const std::vector<std::int64_t>& positions; // of the first row of each sequence
    bool neighbours = false;
};

// Throws shape_error or argument_error, with the shape or number, for what does not fit: then
// something outside the inputs would be read.
rotary_positions read_rotary_positions(const rotary_call& of);

// Writes one row of so many elements somewhere else.
void rotate_row(const rotary_positions& by, std::int64_t position, const float* from, float* to,
                std::int64_t depth);

// {sequences, heads, rows, depth} of f32 as dense {sequences, rows, heads, depth}.
void rotate(const rotary_positions& by, const tensor_desc& of, const void* from, float* to,
            const parallel_loop& loop);

} // namespace maskwise::ort
