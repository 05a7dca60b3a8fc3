#pragma once

#include "kernel_context.hpp"
#include "rotary_positions.hpp"

#include "base/recent_plans.hpp"
#include "fusion/compiled_block.hpp"
#include "maskwise/attention.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

// The kernels of all attention operators share these functions.
namespace maskwise::ort {

// Everything one kernel call needs. `rules` apply if any is set.
struct attention_work {
    attention_desc desc; // operands are {batch, heads, rows, depth}
    attention_operands operands;
    mask_rules rules;
    // ONNX Runtime 1.28 and newer output zeros for a row whose every valid key has a bias of
    // lowest() or less.
    bool lowest_bias_masks = false;
    // The last row attends to all keys, also to keys after its position.
    bool last_row_unmasked = false;
    std::deque<std::vector<float>> computed; // operands computed from inputs
    // If set, run() rotates the queries. Keys are rotated when they are cached.
    std::optional<rotary_positions> rotary;
};

// Layout of cached keys or values. The past is dense {batch, heads, past_capacity, depth}. The
// result is dense {batch, heads, capacity, depth}: past rows, rows of this call, then zeros.
struct cache_layout {
    std::int64_t past_capacity = 0, capacity = 0;
    std::vector<std::int64_t> past_rows; // per sequence
};

// Writes past and new keys and values to outputs 1 and 2, if the node has these outputs. If there
// is a past, `work` then reads both outputs. With rotary embedding, `work` then reads the keys from
// output 1. Throws argument_error if `work` must read an output that the node lacks.
void cache_keys_and_values(attention_work& work, const kernel_context& context,
                           const attention_inputs& inputs, const cache_layout& cache,
                           const parallel_loop& loop);

// Prepares a call of an attention operator: allocates its outputs and writes cached keys and
// values. Throws shape_error and argument_error for operands that do not fit.
attention_work begin_attention(const runtime& api, const attention_operator& op,
                               const kernel_context& context, const attention_settings& settings,
                               const parallel_loop& loop);

using recent_attentions = recent_plans<attention_desc, attention_plan>;

// Computes the attention. Rotated queries use scratch from `pool`.
void run(const attention_work& work, recent_attentions& plans, fusion::block_scratch& pool,
         const parallel_loop& loop);

} // namespace maskwise::ort
