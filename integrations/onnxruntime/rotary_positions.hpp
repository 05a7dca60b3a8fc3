#pragma once

#include "attention_inputs.hpp"

#include <cstdint>
#include <vector>

namespace maskwise::ort {

// Rotary embedding rotates pairs of a row's elements by angles that depend on the row's position.
// Only the first 2 * pairs elements of a row are rotated. If `interleaved`, a pair is two adjacent
// elements, else elements i and i + pairs.
struct rotary_positions {
    const float *cosines = nullptr, *sines = nullptr; // dense {positions, pairs}
    std::int64_t pairs = 0;
    bool interleaved = false;
    // Positions of all rows, dense {sequences, rows}. If `row_positions` is null, `first_positions`
    // has the position of the first row per sequence.
    const std::int64_t* row_positions = nullptr;
    std::vector<std::int64_t> first_positions = {};
    std::int64_t rows = 0; // per sequence

    std::int64_t position(std::int64_t sequence, std::int64_t row) const {
        return row_positions != nullptr ? row_positions[sequence * rows + row]
                                        : first_positions[static_cast<std::size_t>(sequence)] + row;
    }
};

// The arguments of a GroupQueryAttention call that rotation needs.
struct rotary_call {
    const attention_inputs& inputs;
    dims queries;                               // {sequences, heads, rows, depth}
    std::int64_t longest = 0;                   // longest sequence, in keys
    bool begins = false;                        // whether this is a prompt without a past
    const std::vector<std::int64_t>& positions; // of the first row, per sequence
    bool interleaved = false;
};

// Throws shape_error if the shape of an input does not fit, and argument_error for a position
// outside the cosines and sines.
rotary_positions read_rotary_positions(const rotary_call& call);

// Rotates one row of `depth` elements from `source` to `target`, which must not overlap.
void rotate_row(const rotary_positions& rotary, std::int64_t position, const float* source,
                float* target, std::int64_t depth);

// Rotates f32 {sequences, heads, rows, depth} into dense {sequences, rows, heads, depth}.
void rotate(const rotary_positions& rotary, const tensor_desc& queries, const void* source,
            float* target, const parallel_loop& loop);

} // namespace maskwise::ort
