// Maskwise: attention, dst = softmax(query * key^T * scale, masked) * value. Skips fully masked
// tiles of scores.
//
//   using namespace maskwise;
//   attention_desc desc;
//   desc.query = desc.key = desc.value = {data_type::f32, {1, 12, 1024, 64}};
//   const attention_plan attention = compile(desc);
//   const mask_rules causal{.causal = true};
//   attention.execute({.query = q, .key = k, .value = v, .dst = out, .rules = &causal});
//
// C++20. All functions are thread-safe. Unsupported arguments throw an error of maskwise.hpp.
// std::bad_alloc may also be thrown.
#pragma once

#include "maskwise/mask_rules.hpp"
#include "maskwise/maskwise.hpp"

#include <limits>
#include <optional>

namespace maskwise {

struct tile_plan; // internal
struct cached_maps;

inline namespace v1 {

// The order of operations. `tiles` runs an online softmax over tiles of keys and is the fastest.
// `operators` runs MatMul, SoftMax and MatMul in sequence, with their roundings. `fixed` runs the
// same operators, but sums over keys in ascending order. On one machine, the bits of a row of dst
// then depend only on the row's query and its unmasked keys, values and biases. The bits do not
// depend on the batch, padding, other documents, the number of rows, the threads, or whether cond
// or rules mask (tested in tests/unit/attention/test_fixed_order.cpp).
enum class attention_order : std::uint8_t { tiles, operators, fixed };

// The score of a query row and a key is computed in f32, in this order:
//
//   score = dot(query row, key row) * scale
//   score = soft_cap * tanh(score / soft_cap)                  if soft_cap is not 0
//   score = score + bias                                       if there is a bias
//   score = unmasked by cond and rules ? score : fill          if there is a mask
//
// Each row of dst is the mean of value's rows, weighted by exp(score). A sink adds one key to every
// row of a head; the key's score is the sink, and its value row is zeros. Sums are f32. With
// bias_on_fill, the bias is added after the mask, also to the fill.
//
// Shapes: query {batch..., heads, rows, depth}, key {batch..., heads, keys, depth}, value
// {batch..., heads, keys, columns}. The dimensions before the last two may be missing, and
// broadcast by NumPy's rule. With grouped_queries, query may have g times as many heads as key or
// value. Query head h then uses head h / g of key or value.
//
// A bias of -1e30 or less (f16: -65504 or less) also masks. A tile that the bias masks completely
// is computed only if one of its rows may be masked in all other tiles. The tile's scores before
// the bias should be finite and at most 5e29 (f16: 32752). Order `tiles` sums weighted values
// before dividing by the sum of weights, so keys * max(abs(value)) should fit f32.
//
// Masked values should be finite. The weight of a masked value is 0, but 0 * NaN is NaN. A
// skipped tile adds nothing, so whether a NaN reaches dst depends on which tiles are skipped.
// Likewise, with bias_on_fill and a fill of -infinity, masked biases should not be NaN or
// +infinity. With a fill of -infinity, a row never depends on values of other sequences and
// documents, nor on values whose key the rules mask for all rows (such as padding past the
// sequence's length). A row never depends on a NaN or infinite key that cond or the rules mask.
struct attention_desc {
    tensor_desc query, key, value; // all f32, all bf16 or all f16
    tensor_desc cond = {};         // undef: none; else boolean, any nonzero byte is true
    tensor_desc bias = {};         // undef: none; else f32, bf16 or f16
    // undef: none; else f32, bf16 or f16 that broadcasts to {batch..., heads}.
    tensor_desc sinks = {};
    // undef: none; else i32 {sequences, pages}. key and value are then paged caches of shape {pages
    // in the cache, heads, keys per page, depth or columns}. Sequences may share pages. With n keys
    // per page, key i of sequence s is key i % n of page page_table[s][i / n]. Pages past a
    // sequence's length (mask_rules::lengths) are not read, and their numbers may be invalid.
    // Requires a query of {sequences, heads, rows, depth}, order `tiles` or `fixed`, and a fill of
    // -infinity.
    tensor_desc page_table = {};
    float fill = -std::numeric_limits<float>::infinity();
    bool cond_masks = false;         // a true cond masks, instead of a false one
    bool bias_on_fill = false;       // the bias is added after the mask
    std::optional<float> scale = {}; // nullopt: 1 / sqrt(depth)
    float soft_cap = 0;
    // A row whose scores are all -infinity becomes zeros, for example a fully masked row with the
    // default fill. If false, the row becomes NaN, as in SoftMax. If there are no keys, rows are
    // always zeros.
    bool inf_as_zero = true;
    // A row whose weights would be NaN becomes zeros; its statistics stay NaN. Implies inf_as_zero.
    bool nan_as_zero = false;
    bool grouped_queries = false;
    attention_order order = attention_order::tiles;
    // SoftMax's result type in orders `operators` and `fixed`: f32, bf16 or f16
    data_type weights_type = data_type::f32;

    // cond and bias broadcast to {batch..., heads, rows, keys}. Inputs may have any strides (see
    // tensor_desc).

    // {batch..., heads, rows, columns}, f32, bf16 or f16. undef: dense and of query's type.
    tensor_desc dst = {};
    // log(sum of exp(score)) per row: f32 {batch..., heads, rows}. undef: none. If all scores of a
    // row are -infinity: 0 with inf_as_zero, else NaN. If there are neither keys nor sinks:
    // -infinity.
    tensor_desc statistics = {};

    friend bool operator==(const attention_desc&, const attention_desc&) = default;
};

// Caches which tiles a cond or bias masks, by the mask's address. Attentions of one shape that
// share a mask in memory, such as a model's layers, then read the mask once. A cache holds about 16
// masks; further masks are read each time. The masks must not change while the cache exists. Copies
// share one cache. Thread-safe.
class MASKWISE_API mask_maps {
public:
    mask_maps();

    cached_maps& data() const noexcept { return *data_; } // internal

private:
    std::shared_ptr<cached_maps> data_;
};

// Addresses of the operands' elements {0,...,0}; null if absent. The caller owns the memory. dst
// and statistics must not overlap an input.
struct attention_operands {
    const void* query = nullptr;
    const void* key = nullptr;
    const void* value = nullptr;
    const void* cond = nullptr;
    const void* bias = nullptr;
    void* dst = nullptr;
    void* statistics = nullptr;
    const void* sinks = nullptr;
    const mask_rules* rules = nullptr; // null: no rules
    const mask_maps* maps = nullptr;   // caches which tiles are masked; null: each call reads masks
    const void* page_table = nullptr;
};

// Numbers of score tiles by treatment, summed over all heads.
struct tile_counts {
    std::int64_t all = 0;
    std::int64_t full = 0;  // unmasked, without a nonzero bias: computed without the mask
    std::int64_t mixed = 0; // partly masked, or with a nonzero bias: computed with the mask
    // The bias is so low that every weight may be 0. Computed last, and only if a weight can be
    // nonzero.
    std::int64_t deferred = 0;
    // Masked by cond or rules, or by a bias of -infinity.
    std::int64_t skipped = 0;
};

// A compiled attention. Immutable. Copies are cheap, because they share data. Threads may execute
// one plan concurrently.
class MASKWISE_API attention_plan {
public:
    // Type, extents and strides of the result. The reference is valid as long as the plan.
    const tensor_desc& dst() const noexcept;

    // Writes dst and statistics. Runs on the threads of `loop`; without `loop`, in the caller's
    // oneTBB task arena. Small attentions run on the calling thread. Throws argument_error for a
    // null address of an operand with elements, for rules that do not fit the description, for a
    // page that is not in the cache, and for a loop without threads or function. Throws
    // std::bad_alloc and the loop's exceptions. After argument_error and bad_alloc, nothing is
    // written.
    void execute(const attention_operands& operands) const;
    void execute(const attention_operands& operands, const parallel_loop& loop) const;

    // Counts the tiles of an execution with these operands. Reads only cond, bias and the page
    // table; dst and statistics may be null. Throws as execute does.
    tile_counts count_tiles(const attention_operands& operands) const;

    // Bytes of scratch memory of an execution on `threads` threads. Later executions reuse the
    // memory.
    std::int64_t scratch_bytes(int threads) const noexcept;

    // A move is a copy: the source stays valid.
    attention_plan(const attention_plan&) = default;
    attention_plan& operator=(const attention_plan&) = default;

    // Internal.
    explicit attention_plan(std::shared_ptr<const tile_plan> data) noexcept;

private:
    friend MASKWISE_API std::string to_string(const attention_plan& plan);
    friend MASKWISE_API std::string explain(const attention_plan& plan);

    std::shared_ptr<const tile_plan> data_;
};

// Returns compile(desc).dst() without making a plan. Throws as compile does for types, layouts,
// numbers, and shapes that do not fit each other.
MASKWISE_API tensor_desc infer_dst(const attention_desc& desc);

// Throws argument_error for unsupported types, layouts and numbers, and if MASKWISE_MAX_ISA is not
// an instruction set of this machine. Throws shape_error for negative extents, for shapes that do
// not fit each other, and for sizes beyond 64 bits, 2^48 elements per row or 2^60 multiplications.
MASKWISE_API attention_plan compile(const attention_desc& desc);

// Describe the plan: to_string in one line, explain in sentences. Any version may change the text.
MASKWISE_API std::string to_string(const attention_plan& plan);
MASKWISE_API std::string explain(const attention_plan& plan);

} // namespace v1
} // namespace maskwise
