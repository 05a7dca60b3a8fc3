// Maskwise: attention, dst = softmax(query * key^T * scale, masked) * value, at a cost that follows
// the mask: parts that it masks are not computed.
//
//   using namespace maskwise;
//   attention_desc desc;
//   desc.query = desc.key = desc.value = {data_type::f32, {1, 12, 1024, 64}};
//   desc.causal = causal_boundary::top_left;
//   const attention_plan attention = compile(desc);
//   attention.execute({.query = q, .key = k, .value = v, .dst = out}); // out is f32 {1,12,1024,64}
//
// C++20. Every function may be called from any thread. What can never be served throws one of
// maskwise.hpp's errors; std::bad_alloc passes through.
#pragma once

#include "maskwise/mask_rules.hpp"
#include "maskwise/maskwise.hpp"

#include <limits>
#include <optional>

namespace maskwise {

struct tile_plan; // the library's
struct cached_maps;

inline namespace v1 {

// Keys up to a boundary are kept. top_left: key <= row; bottom_right: key <= row + keys - rows, so
// that the last row keeps all.
enum class causal_boundary : std::uint8_t { none, top_left, bottom_right };

// "none", "top_left", "bottom_right".
MASKWISE_API std::string_view to_string(causal_boundary boundary);

// tiles: as tiles of keys come, the fastest. operators: as MatMul, SoftMax and MatMul one after the
// other, for results with the roundings of these.
enum class attention_order : std::uint8_t { tiles, operators };

// The score of a row (of query) and a key is, in this order and in f32:
//
//   score = dot(query row, key row) * scale
//   score = soft_cap * tanh(score / soft_cap)           where soft_cap is not 0
//   score = score + bias                                where there is one
//   score = cond && key <= boundary && rules ? score : fill    where there is one of them
//
// and the row of dst is the mean of value's rows, weighted with exp(score). A sink adds one score
// with a value of 0 to each row of its head. Sums are f32. With bias_on_fill the bias is added
// last, and so to the fill, too.
//
// Shapes: query {batch..., heads, rows, depth}, key {batch..., heads, keys, depth}, value
// {batch..., heads, keys, columns}; at least {rows, depth}. What stands before the last two
// dimensions broadcasts by NumPy's rule. With grouped_queries query may have a multiple of the
// heads of key, and of those of value: head h of query meets head h / (query's / key's heads).
//
// A bias of -1e30 or less (in f16: -65504 or less) masks, too: a part in which every place has one
// is computed only where a row has nothing else, so scores there should be finite and no larger
// than half of that (in f16: 32752). By order `tiles` values are summed before they are divided by
// the sum of weights: the number of keys times the largest value should fit f32.
//
// Where a score is -infinity the weight is 0, but the value may be NaN or infinite. By the
// definition 0 * NaN makes the row NaN; a place that is not computed, because the mask masks
// everything around it, adds nothing. Which of both happens is not defined: keep such values
// finite. With a fill of -infinity two things never matter: values that the boundary and rules mask
// for all rows of a sequence, as those past its length, and values that belong to other sequences
// or documents only. What is not defined holds, too, for an infinite or NaN bias on a fill of
// -infinity. A key that is NaN or infinite where cond or the boundary masks it never matters.
struct attention_desc {
    tensor_desc query, key, value; // all f32, all bf16 or all f16
    tensor_desc cond = {};         // none where undef; else boolean, any byte but 0 is true
    tensor_desc bias = {};         // none where undef; else f32, bf16 or f16
    // None where undef; else f32, bf16 or f16 that broadcasts to {batch..., heads}.
    tensor_desc sinks = {};
    float fill = -std::numeric_limits<float>::infinity();
    bool cond_masks = false;   // a true cond masks; by default it keeps
    bool bias_on_fill = false; // see above
    causal_boundary causal = causal_boundary::none;
    std::optional<float> scale =
        {}; // any number; 1 / sqrt(depth) where not given; without depth scores are 0
    float soft_cap = 0;
    // A row of which every score is -infinity, as one that is masked as a whole: zeros, or else NaN
    // as SoftMax by itself makes of it. Without any key it is zeros.
    bool inf_as_zero = true;
    // A row of NaN is zeros, too; its statistics stay NaN. Implies inf_as_zero.
    bool nan_as_zero = false;
    bool grouped_queries = false;
    attention_order order = attention_order::tiles;
    data_type weights_type = data_type::f32; // f32, bf16 or f16: of SoftMax's result, by operators

    // cond and bias broadcast to {batch..., heads, rows, keys}; the strides of every operand are
    // any, as maskwise.hpp says.

    // {batch..., heads, rows, columns}, f32, bf16 or f16; dense and of query's type where undef.
    tensor_desc dst = {};
    // The logarithm of each row's sum of exp(score): f32 {batch..., heads, rows}; none where undef.
    // Of a row of which every score is -infinity: 0 with inf_as_zero, else NaN; -infinity without
    // keys.
    tensor_desc statistics = {};

    friend bool operator==(const attention_desc&, const attention_desc&) = default;
};

// Keeps which tiles conds and biases mask, so that attentions that are given the same memory again,
// as the layers of a model are, do not read all of it again. The masks must not change as long as
// it lives. Copies share what they keep, and any number of threads may use one at once.
class MASKWISE_API mask_maps {
public:
    mask_maps();

    cached_maps& data() const noexcept { return *data_; } // for the library

private:
    std::shared_ptr<cached_maps> data_;
};

// The addresses of each operand's element {0,...,0}; null where there is none. Memory stays the
// caller's. dst and statistics may not overlap an input.
struct attention_operands {
    const void* query = nullptr;
    const void* key = nullptr;
    const void* value = nullptr;
    const void* cond = nullptr;
    const void* bias = nullptr;
    void* dst = nullptr;
    void* statistics = nullptr;
    const void* sinks = nullptr;
    const mask_rules* rules = nullptr; // of any plan; null: none
    const mask_maps* maps = nullptr;   // of this cond and this bias; null: they may have changed
};

// What becomes of the tiles of scores, all heads together.
struct tile_counts {
    std::int64_t all = 0;
    std::int64_t full = 0;     // every place is kept: computed as if there were no mask
    std::int64_t mixed = 0;    // computed, and the mask applied to each place
    std::int64_t deferred = 0; // masked by a finite number: computed where a row has nothing else
    std::int64_t skipped = 0;
};

// A compiled attention: immutable, a pointer to shared data, so cheap to copy, and any number of
// threads may execute one at once.
class MASKWISE_API attention_plan {
public:
    // Type, extents and strides of the result; lives as long as the plan.
    const tensor_desc& dst() const noexcept;

    // Writes dst and statistics. Uses the threads of the caller's oneTBB task arena, or those of
    // the loop. Throws argument_error for a null address of an operand with elements and for rules
    // that do not fit, and passes std::bad_alloc and what the loop throws on; with the former two
    // nothing is written.
    void execute(const attention_operands& at) const;
    void execute(const attention_operands& at, const parallel_loop& loop) const;

    // What execute would do with these operands; reads cond and bias only. Throws as that does.
    tile_counts count_tiles(const attention_operands& at) const;

    // What an execution on so many threads allocates, and keeps for the next.
    std::int64_t scratch_bytes(int threads) const noexcept;

    // A move copies, and leaves a plan that works.
    attention_plan(const attention_plan&) = default;
    attention_plan& operator=(const attention_plan&) = default;

    // For the library.
    explicit attention_plan(std::shared_ptr<const tile_plan> data) noexcept;

private:
    friend MASKWISE_API std::string to_string(const attention_plan& of);
    friend MASKWISE_API std::string explain(const attention_plan& of);

    std::shared_ptr<const tile_plan> data_;
};

// What attention_plan::dst() of compile(desc) is. Throws as that does for types, layouts, numbers
// and shapes that do not fit each other, and makes no plan.
MASKWISE_API tensor_desc infer_dst(const attention_desc& desc);

// Throws argument_error for types, layouts and numbers that cannot be served and where
// MASKWISE_MAX_ISA is not an instruction set of this machine; shape_error for shapes that do not
// fit each other and sizes beyond 64 bits.
MASKWISE_API attention_plan compile(const attention_desc& desc);

// The plan in one line, and in words. For people and logs; the words may change with any version.
MASKWISE_API std::string to_string(const attention_plan& of);
MASKWISE_API std::string explain(const attention_plan& of);

} // namespace v1
} // namespace maskwise
