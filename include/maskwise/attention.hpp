// Maskwise: attention, dst = softmax(query * key^T * scale, masked) * value. Parts that the mask
// removes are not computed.
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

// The order of operations. tiles: online softmax over tiles of keys, the fastest. operators:
// MatMul, SoftMax and MatMul in sequence, with the roundings of these operators. fixed: the same,
// and every sum adds its terms one by one in the order of the keys. On one machine, the bits of a
// row of dst then depend only on its query and on its unmasked keys and values, not on the batch,
// padding, packed neighbors, the number of rows, the form of the mask, or threads. The oracle of
// this contract is tests/unit/attention/test_fixed_order.cpp.
enum class attention_order : std::uint8_t { tiles, operators, fixed };

// The score of a row (of query) and a key is, in this order and in f32:
//
//   score = dot(query row, key row) * scale
//   score = soft_cap * tanh(score / soft_cap)                  if soft_cap is not 0
//   score = score + bias                                       if there is a bias
//   score = cond && rules ? score : fill                       if there is a mask
//
// The row of dst is the mean of value's rows, weighted by exp(score). A sink adds one score with a
// value of 0 to each row of its head. Sums are f32. With bias_on_fill the bias is added last, so
// also to the fill.
//
// Shapes: query {batch..., heads, rows, depth}, key {batch..., heads, keys, depth}, value
// {batch..., heads, keys, columns}; at least {rows, depth}. The dimensions before the last two
// broadcast by NumPy's rule. With grouped_queries, query may have g times the heads of key and of
// value: head h of query then uses head h / g.
//
// A bias of -1e30 or less (f16: -65504 or less) also masks. A tile in which all elements have such
// a bias is computed only for rows without other keys. So scores there should be finite and at most
// half of that (f16: 32752). In order `tiles`, values are summed before the division by the sum of
// weights, so the number of keys times the largest value should fit f32.
//
// NaN and infinity in masked places: a score of -infinity has weight 0, and 0 * NaN is NaN, but a
// skipped tile adds nothing. Either may happen, so keep masked values finite.
// The same holds for an infinite or NaN bias on a fill of -infinity. With a fill of -infinity some
// values never matter: those that the rules mask for all rows of a sequence, such as padding past
// its length, and those of other sequences or documents. A NaN or infinite key never matters where
// cond or the rules mask it.
struct attention_desc {
    tensor_desc query, key, value; // all f32, all bf16 or all f16
    tensor_desc cond = {};         // undef: none; else boolean, any byte but 0 is true
    tensor_desc bias = {};         // undef: none; else f32, bf16 or f16
    // undef: none; else f32, bf16 or f16 that broadcasts to {batch..., heads}.
    tensor_desc sinks = {};
    // undef: none; else i32 {sequences, pages}: key and value are a cache in pages that sequences
    // may share, {pages of the cache, heads, keys of a page, depth or columns}. With n keys in a
    // page, key i of sequence s is key i % n of the cache's page table[s][i / n]. Pages past a
    // sequence's length (mask_rules::lengths) are not read, nor need their numbers be valid. query
    // is {sequences, heads, rows, depth}; order is `tiles`, and fill -infinity.
    tensor_desc page_table = {};
    float fill = -std::numeric_limits<float>::infinity();
    bool cond_masks = false;         // a true cond masks, instead of a false one
    bool bias_on_fill = false;       // see above
    std::optional<float> scale = {}; // nullopt: 1 / sqrt(depth)
    float soft_cap = 0;
    // If all scores of a row are -infinity, for example because all are masked, the row becomes
    // zeros; if false, NaN, as SoftMax defines it. A row without keys always becomes zeros.
    bool inf_as_zero = true;
    // A row that would be NaN becomes zeros; its statistics stay NaN. Implies inf_as_zero.
    bool nan_as_zero = false;
    bool grouped_queries = false;
    attention_order order = attention_order::tiles;
    // SoftMax's result type in orders `operators` and `fixed`: f32, bf16 or f16
    data_type weights_type = data_type::f32;

    // cond and bias broadcast to {batch..., heads, rows, keys}. Operands may have any strides (see
    // tensor_desc).

    // {batch..., heads, rows, columns}, f32, bf16 or f16. undef: dense and of query's type.
    tensor_desc dst = {};
    // log(sum of exp(score)) per row: f32 {batch..., heads, rows}. undef: none. If all scores of a
    // row are -infinity it is 0 with inf_as_zero, else NaN. Without keys it is -infinity.
    tensor_desc statistics = {};

    friend bool operator==(const attention_desc&, const attention_desc&) = default;
};

// Caches which tiles conds and biases mask, by address. So attentions that share a mask in memory,
// such as the layers of a model, read it once. The masks must not change while the cache lives.
// Copies share their contents. Thread-safe.
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
    const mask_rules* rules = nullptr; // null: none; works with any plan
    const mask_maps* maps = nullptr;   // a cache for cond and bias; null: they may have changed
    const void* page_table = nullptr;
};

// How the tiles of scores are treated, summed over all heads.
struct tile_counts {
    std::int64_t all = 0;
    std::int64_t full = 0;  // unmasked: computed without the mask
    std::int64_t mixed = 0; // partly masked: computed with the mask
    // masked by a finite number: computed only for rows without other keys
    std::int64_t deferred = 0;
    std::int64_t skipped = 0;
};

// A compiled attention. Immutable, and a pointer to shared data, so copies are cheap. Any number of
// threads may execute one at once.
class MASKWISE_API attention_plan {
public:
    // Type, extents and strides of the result. The reference is valid as long as the plan.
    const tensor_desc& dst() const noexcept;

    // Writes dst and statistics, on the threads of the caller's oneTBB task arena, or of the loop;
    // little work runs on the calling thread.
    // Throws argument_error for a null address of an operand with elements, for rules that do not
    // fit, and for the number of a page that the cache does not have; std::bad_alloc; and
    // exceptions of the loop. On argument_error and bad_alloc nothing is written.
    void execute(const attention_operands& operands) const;
    void execute(const attention_operands& operands, const parallel_loop& loop) const;

    // Counts the tiles that execute would compute for these operands. Reads cond and bias only.
    // Throws as execute does.
    tile_counts count_tiles(const attention_operands& operands) const;

    // Bytes of scratch memory that an execution on this many threads allocates, and reuses later.
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
// numbers and shapes.
MASKWISE_API tensor_desc infer_dst(const attention_desc& desc);

// Throws argument_error for unsupported types, layouts and numbers, and if MASKWISE_MAX_ISA is not
// an instruction set of this machine. Throws shape_error for shapes that do not fit each other and
// sizes beyond 64 bits.
MASKWISE_API attention_plan compile(const attention_desc& desc);

// The plan in one line, and explained in words. For people and logs: the text may change with any
// version.
MASKWISE_API std::string to_string(const attention_plan& plan);
MASKWISE_API std::string explain(const attention_plan& plan);

} // namespace v1
} // namespace maskwise
