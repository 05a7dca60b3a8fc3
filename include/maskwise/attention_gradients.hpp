// Maskwise: gradients of attention. Their cost follows the mask, as attention's does.
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

// The gradients of a function of attention's dst by attention's inputs, from its gradient by dst.
// Scores are computed again from query, key and the statistics; memory is linear in rows and keys.
//
// Masked places pass no gradient to query, key and soft cap. Rows without keys have gradients of 0.
// NaN and infinity in keys, values, queries and dst's gradient matter only in unmasked places, as
// in the attention. Results do not depend on the number of threads.
//
// If all scores of a row are below -2^17, as with a bias of -1e9 on every key, the statistics of
// the row have lost the logarithm of the sum. Maskwise then computes the row's weights again.
struct attention_gradients_desc {
    // As compiled for the result, in order `tiles` and without nan_as_zero. Statistics that are
    // undef are dense. With grouped_queries, key and value have the same number of heads.
    attention_desc attention;
    tensor_desc dst_gradient = {}; // f32, bf16 or f16 of dst's shape. undef: dense, of dst's type

    // Gradients of f32, bf16 or f16. undef: of the operand's type. Without extents: dense. The
    // shapes are those of the operands, with the dimensions before the last two broadcast as in
    // dst: {batch..., heads, rows, depth}, {batch..., key heads, keys, depth} and {batch..., key
    // heads, keys, columns}.
    tensor_desc query_gradient = {}, key_gradient = {}, value_gradient = {};
    // f32 of the operand's shape: sums over its broadcast dimensions. undef: not computed.
    tensor_desc bias_gradient = {}, sinks_gradient = {};

    friend bool operator==(const attention_gradients_desc&,
                           const attention_gradients_desc&) = default;
};

// Addresses as in attention_operands. `attention` has the inputs, and dst and statistics as the
// attention wrote them; these are read only. Gradients overlap no other operand.
struct attention_gradients_operands {
    attention_operands attention;
    const void* dst_gradient = nullptr;
    void* query_gradient = nullptr;
    void* key_gradient = nullptr;
    void* value_gradient = nullptr;
    void* bias_gradient = nullptr;
    void* sinks_gradient = nullptr;
};

// Compiled gradients. Immutable, and a pointer to shared data, so copies are cheap. Any number of
// threads may execute one at once.
class MASKWISE_API attention_gradients_plan {
public:
    // The description with all types, extents and strides. Valid as long as the plan.
    const attention_gradients_desc& desc() const noexcept;

    // Writes the gradients. Threads and exceptions as attention_plan::execute.
    void execute(const attention_gradients_operands& operands) const;
    void execute(const attention_gradients_operands& operands, const parallel_loop& loop) const;

    // Bytes of scratch memory that an execution on this many threads allocates, and reuses later.
    std::int64_t scratch_bytes(int threads) const;

    // Internal.
    explicit attention_gradients_plan(std::shared_ptr<const gradients_plan> data) noexcept;

private:
    std::shared_ptr<const gradients_plan> data_;
};

// Throws as compile(attention_desc) does.
MASKWISE_API attention_gradients_plan compile(const attention_gradients_desc& desc);

} // namespace v1
} // namespace maskwise
