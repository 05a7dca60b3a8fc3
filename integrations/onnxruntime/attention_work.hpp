#pragma once

#include "calls.hpp"
#include "rotary_positions.hpp"

#include "fusion/compiled_block.hpp"
#include "maskwise/attention.hpp"
#include "plan/recent_plans.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

// What the kernels of all attention operators share.
namespace maskwise::ort {

// What a call of one computes. Its rules count if there are any.
struct attention_work {
    attention_desc desc; // of {batch, heads, rows, depth}
    attention_operands at;
    mask_rules rules;
    // Rows of which each key that counts has the lowest number of the bias's type, or less, are
    // zeros.
    bool lowest_masks = false;
    // The last row keeps all keys, also those behind its position.
    bool last_row_keeps_all = false;
    std::deque<std::vector<float>> made; // operands that no input is
    // Of queries, which run rotates; keys are rotated as they are kept.
    std::optional<rotary_positions> rotary;
};

// Keys and values of earlier calls, dense {batch, heads, past_capacity, depth}, and behind them
// those of this call, which the next is given: {batch, heads, capacity, depth}, 0 behind all.
struct cache_layout {
    std::int64_t past_capacity = 0, capacity = 0;
    std::vector<std::int64_t> past_rows; // of each sequence
};

// Makes the outputs 1 and 2, where the node has them, of the work's keys and values, and lets the
// work use them if earlier ones count or keys are rotated. Throws argument_error where it then has
// none.
void keep_for_next(attention_work& work, const call& at, const attention_inputs& in,
                   const cache_layout& cache, const parallel_loop& loop);

// A call of an attention operator. Makes its outputs, and writes those that hold keys and values.
// Throws shape_error and argument_error for what does not fit.
attention_work begin_attention(const runtime& with, const attention_operator& of, const call& at,
                               const attention_settings& settings, const parallel_loop& loop);

using recent_attentions = recent_plans<attention_desc, attention_plan>;

// Rotated queries lie in the memory meanwhile.
void run(const attention_work& work, recent_attentions& plans, fusion::block_scratch& memory,
         const parallel_loop& loop);

} // namespace maskwise::ort
