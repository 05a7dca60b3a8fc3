// Maskwise: gradients of attention. Fully masked tiles are skipped, as in attention.
//
//   attention_desc desc; // as for the attention, with statistics
//   ...
//   const attention_plan attention = compile(desc);
//   const attention_gradients_plan gradients = compile(attention_gradients_desc{desc});
//   attention.execute(operands);
//   gradients.execute({operands, dst_gradient, query_gradient, key_gradient, value_gradient});
#pragma once

#include "maskwise/attention.hpp"

namespace maskwise {

struct gradients_plan; // internal

inline namespace v1 {

// Computes a loss's gradients with respect to attention's inputs. Reads the loss's gradient with
// respect to dst. Scores are recomputed, so memory is linear in rows and keys.
//
// No gradient passes through masked scores to query and key. Rows without keys have gradients of 0.
// A NaN or infinity in query, key, value or dst_gradient affects gradients only through unmasked
// scores. The limits stated at attention_desc also apply. Results do not depend on the number of
// threads. A row's weights are recomputed from its statistics. Above 2^17 in magnitude, for example
// under a bias of -1e9 on every key, f32 statistics are too coarse: the row's maximum and sum are
// recomputed.
struct attention_gradients_desc {
    // The attention's description. Requires order `tiles`, and neither nan_as_zero nor a
    // page_table. With grouped_queries, key and value must have the same number of heads. If the
    // statistics are undef, the gradients read dense f32 statistics.
    attention_desc attention;
    tensor_desc dst_gradient = {}; // f32, bf16 or f16 of dst's shape. undef: dense, of dst's type

    // f32, bf16 or f16. undef: query's type. A description without extents means a dense gradient.
    // The dimensions before the last two are broadcast as in dst: {batch..., heads, rows, depth},
    // {batch..., key heads, keys, depth} and {batch..., key heads, keys, columns}.
    tensor_desc query_gradient = {}, key_gradient = {}, value_gradient = {};
    // f32 of the operand's shape, summed over broadcast dimensions. undef: not computed.
    tensor_desc bias_gradient = {}, sinks_gradient = {};

    friend bool operator==(const attention_gradients_desc&,
                           const attention_gradients_desc&) = default;
};

// Addresses as in attention_operands. `attention` holds the inputs, and the dst and statistics that
// the attention wrote; all of these are only read. Gradients must not overlap any other operand.
struct attention_gradients_operands {
    attention_operands attention;
    const void* dst_gradient = nullptr;
    void* query_gradient = nullptr;
    void* key_gradient = nullptr;
    void* value_gradient = nullptr;
    void* bias_gradient = nullptr;
    void* sinks_gradient = nullptr;
};

// Compiled gradients. Immutable. Copies are cheap, because they share data. Threads may execute one
// plan concurrently.
class MASKWISE_API attention_gradients_plan {
public:
    // The description with all types, extents and strides filled in. The reference is valid as long
    // as the plan.
    const attention_gradients_desc& desc() const noexcept;

    // Writes the gradients. Uses threads and throws as attention_plan::execute does.
    void execute(const attention_gradients_operands& operands) const;
    void execute(const attention_gradients_operands& operands, const parallel_loop& loop) const;

    // Bytes of scratch memory of an execution on `threads` threads. Later executions reuse the
    // memory.
    std::int64_t scratch_bytes(int threads) const;

    // Internal.
    explicit attention_gradients_plan(std::shared_ptr<const gradients_plan> data) noexcept;

private:
    std::shared_ptr<const gradients_plan> data_;
};

// Throws as compile(attention_desc) does, also for the gradients' descriptions.
MASKWISE_API attention_gradients_plan compile(const attention_gradients_desc& desc);

} // namespace v1
} // namespace maskwise
