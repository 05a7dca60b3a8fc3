// Maskwise: attention, dst = softmax(query * key^T * scale, masked) * value. Fully masked tiles of
// scores are skipped.
//
//   using namespace maskwise;
//   attention_desc desc;
//   desc.query = desc.key = desc.value = {data_type::f32, {1, 12, 1024, 64}};
//   const attention_plan attention = compile(desc);
//   const mask_rules causal{.causal = true};
//   attention.execute({.query = q, .key = k, .value = v, .dst = out, .rules = &causal});
//
// C++20. All functions are thread-safe. Arguments that Maskwise does not support throw an error of
// maskwise.hpp; std::bad_alloc may be thrown, too.
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
// `operators` runs MatMul, SoftMax and MatMul in sequence, with the roundings of these operators.
// `fixed` runs the same operators, but sums over keys in the order of the keys. On one machine, the
// bits of a row of dst then depend only on the row's query, and on the keys, values and biases that
// are unmasked for the row. The bits do not depend on the batch, the padding, other documents of
// the sequence, the number of rows, the threads, or whether cond or rules mask.
// tests/unit/attention/test_fixed_order.cpp tests this contract.
enum class attention_order : std::uint8_t { tiles, operators, fixed };

// The score of a query row and a key is computed in f32 and in this order:
//
//   score = dot(query row, key row) * scale
//   score = soft_cap * tanh(score / soft_cap)                  if soft_cap is not 0
//   score = score + bias                                       if there is a bias
//   score = unmasked by cond and rules ? score : fill          if there is a mask
//
// Each row of dst is the mean of value's rows, weighted by exp(score). A sink adds one more key to
// every row of one head. The score of this key is the sink, and the value row is zeros. Sums are
// f32. With bias_on_fill, the bias is added after the mask, also to the fill.
//
// Shapes: query {batch..., heads, rows, depth}, key {batch..., heads, keys, depth}, value
// {batch..., heads, keys, columns}. The dimensions before the last two may be missing, and
// broadcast by NumPy's rule. With grouped_queries, query may have g times as many heads as key or
// value. Head h of query then uses head h / g of key or value.
//
// A bias of -1e30 or less (f16: -65504 or less) also masks. A tile that the bias masks completely
// is computed only if one of its rows has no unmasked key. The tile's scores before the bias should
// be finite and at most 5e29 (f16: 32752). In order `tiles`, weighted values are summed before the
// division by the sum of weights. So the number of keys, times the largest magnitude of an element
// of value, should fit f32.
//
// Values at masked places should be finite. The weight of a masked value is 0, and 0 * NaN is NaN,
// but a skipped tile adds nothing. So the result would depend on which tiles are skipped. For the
// same reason, with bias_on_fill and a fill of -infinity, the bias at masked places should not be
// NaN or +infinity. With a fill of -infinity, a row never depends on values of other sequences and
// documents, nor on values whose key the rules mask for all rows (such as padding past the
// sequence's length). A row never depends on a NaN or infinite key that cond or the rules mask.
struct attention_desc {
    tensor_desc query, key, value; // all f32, all bf16 or all f16
    tensor_desc cond = {};         // undef: none; else boolean, any byte but 0 is true
    tensor_desc bias = {};         // undef: none; else f32, bf16 or f16
    // undef: none; else f32, bf16 or f16 that broadcasts to {batch..., heads}.
    tensor_desc sinks = {};
    // undef: none; else i32 {sequences, pages}. key and value are then paged caches of shape {pages
    // of the cache, heads, keys of a page, depth or columns}. Sequences may share pages. With n
    // keys in a page, key i of sequence s is key i % n of the cache's page table[s][i / n]. Pages
    // past a sequence's length (mask_rules::lengths) are not read, and their numbers may be
    // invalid. Requires a query of {sequences, heads, rows, depth}, order `tiles` or `fixed`, and a
    // fill of -infinity.
    tensor_desc page_table = {};
    float fill = -std::numeric_limits<float>::infinity();
    bool cond_masks = false;         // a true cond masks, instead of a false one
    bool bias_on_fill = false;       // the bias is added after the mask
    std::optional<float> scale = {}; // nullopt: 1 / sqrt(depth)
    float soft_cap = 0;
    // A row whose scores are all -infinity becomes zeros, for example a fully masked row with the
    // default fill. If false, the row becomes NaN, as SoftMax defines. A row without keys always
    // becomes zeros.
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
    // row are -infinity, the result is 0 with inf_as_zero and NaN without. Without keys and sinks,
    // the result is -infinity.
    tensor_desc statistics = {};

    friend bool operator==(const attention_desc&, const attention_desc&) = default;
};

// Caches which tiles a cond or bias masks, by the address of the mask. Attentions of one shape that
// share a mask in memory, such as the layers of a model, then read the mask once. A cache holds
// about 16 masks; further masks are read each time. The masks must not change while the cache
// lives. Copies share one cache. Thread-safe.
class MASKWISE_API mask_maps {
public:
    mask_maps();

    cached_maps& data() const noexcept { return *data_; } // internal

private:
    std::shared_ptr<cached_maps> data_;
};

// The address of each operand's element {0,...,0}; null if absent. The caller owns the memory. dst
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

// Numbers of tiles of scores by their treatment, summed over all heads.
struct tile_counts {
    std::int64_t all = 0;
    std::int64_t full = 0;  // unmasked, without a nonzero bias: computed without the mask
    std::int64_t mixed = 0; // partly masked, or with a nonzero bias: computed with the mask
    // The bias is so low that every weight may be 0. Computed last, and only if a row gives the
    // tile a weight.
    std::int64_t deferred = 0;
    // Masked by cond or rules, or by a bias of -infinity.
    std::int64_t skipped = 0;
};

// A compiled attention. Immutable. Copies are cheap, because they share data. Any number of threads
// may execute one plan at once.
class MASKWISE_API attention_plan {
public:
    // Type, extents and strides of the result. The reference is valid as long as the plan.
    const tensor_desc& dst() const noexcept;

    // Writes dst and statistics. Runs on the loop's threads, or without a loop on the threads of
    // the caller's oneTBB task arena. Small attentions run on the calling thread. Throws
    // argument_error for a null address of an operand with elements, for rules that do not fit the
    // description, for a page number that the cache does not have, and for a loop without threads
    // or function. Throws std::bad_alloc, and exceptions of the loop. After argument_error and
    // bad_alloc, nothing is written.
    void execute(const attention_operands& operands) const;
    void execute(const attention_operands& operands, const parallel_loop& loop) const;

    // Counts the tiles of an execution with these operands. Reads cond, bias and the page table
    // only; dst and statistics may be null. Throws as execute does.
    tile_counts count_tiles(const attention_operands& operands) const;

    // Bytes of scratch memory that an execution on this many threads uses. Later executions reuse
    // the memory.
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

// The dst() of compile(desc), without making a plan. Throws as compile does for types, layouts,
// numbers, and shapes that do not fit each other.
MASKWISE_API tensor_desc infer_dst(const attention_desc& desc);

// Throws argument_error for unsupported types, layouts and numbers, and if MASKWISE_MAX_ISA is not
// an instruction set of this machine. Throws shape_error for negative extents, for shapes that do
// not fit each other, and for sizes beyond 64 bits, 2^48 elements a row or 2^60 multiplications.
MASKWISE_API attention_plan compile(const attention_desc& desc);

// The plan in one line, and explained in words. For people and logs: the text may change with any
// version.
MASKWISE_API std::string to_string(const attention_plan& plan);
MASKWISE_API std::string explain(const attention_plan& plan);

} // namespace v1
} // namespace maskwise
