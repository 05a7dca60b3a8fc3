#pragma once

#include "calls.hpp"

#include "maskwise/attention.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>
#include <utility>
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
};

// {batch, rows, heads * depth} as {batch, heads, rows, depth}; four dimensions stay. Throws
// shape_error, with the operand's name, for other ranks and for a last extent that is no multiple.
tensor_desc by_heads(std::string_view name, const tensor_desc& of, std::int64_t heads);

// Throws shape_error, with both shapes, where an extent is another one; -1 expects any.
void expect_shape(std::string_view name, const dims& actual, const dims& expected);

// Keys or values of earlier calls and behind them those of this one: what the next call is given.
struct cached_state {
    tensor_desc added; // {batch, heads, rows, depth}
    const void* added_at = nullptr;
    const void* past_at = nullptr; // dense {batch, heads, past_capacity, depth}; null where there is none
    void* at = nullptr;            // dense {batch, heads, capacity, depth}; may be past_at
    std::int64_t past_capacity = 0, capacity = 0;
    // Rows of the past and of those added, of each sequence; what lies behind them is 0.
    std::vector<std::int64_t> past_rows, added_rows;
};

void join(const cached_state& state, const parallel_loop& loop);

// The plans of the last shapes: generated text, for one, has another length each time. Any thread.
class recent_plans {
public:
    attention_plan find(const attention_desc& desc);

private:
    std::mutex mutex_;
    std::deque<std::pair<attention_desc, attention_plan>> kept_;
};

void run(const attention_work& work, recent_plans& plans, const parallel_loop& loop);

} // namespace maskwise::ort
