// Maskwise: attention masks as rules instead of an array of rows x keys.
//
//   mask_rules rules;
//   rules.causal = true;
//   rules.window = {.left = 127};           // each row attends to its own key and 127 before it
//   rules.lengths = {900, 1024};           // two sequences; the first is padded
//   attention.execute({.query = q, .key = k, .value = v, .dst = out, .rules = &rules});
#pragma once

#include "maskwise/maskwise.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace maskwise {
inline namespace v1 {

// A sliding window: this many keys on either side of a row's position; -1: all. Same as
// flash_attn's window_size: |position - key| <= W is {W, W}. transformers' causal sliding_window of
// W is {W - 1}.
struct key_window {
    std::int64_t left = -1, right = -1;
    std::int64_t first_keys = 0; // this many first keys of a sequence are always in the window
};

// A row attends to its own chunk of keys and to this many earlier chunks.
struct key_chunks {
    std::int64_t size = 1, earlier = 0;
};

// A run of rows that attend to one run of keys only.
struct document {
    std::int64_t first_row = 0, rows = 0, first_key = 0, keys = 0;
};

// A key is unmasked if every rule that is set allows it. A vector has one element for all
// sequences, or one per sequence; a sequence is an index of dst's first dimension. Numbers are at
// most 2^48.
//
// position(r) = r + offset. `from_end`: shifted so that the last row aligns with the last key.
// `in_documents`: rows, keys and the shift are counted within each document. Chunks, prefixes and
// first_keys count from the first key of the document, or else of the sequence.
struct mask_rules {
    std::vector<std::int64_t> offsets = {}; // empty: 0
    bool from_end = false;
    bool in_documents = false;
    bool causal = false; // key <= position
    std::optional<key_window> window = {};
    std::optional<key_chunks> chunks = {};
    // all rows attend to this many first keys, despite causal, window and chunks
    std::vector<std::int64_t> prefixes = {};
    std::vector<std::int64_t> starts = {}, lengths = {}; // start <= key < length
    // ALiBi: slope * |position - key| is subtracted from each score, after the soft cap. One finite
    // slope per head of dst's last dimension before the rows, or per sequence and head; empty:
    // none. Excludes a bias.
    std::vector<float> slopes = {};
    // Per sequence, ordered by rows and disjoint; empty: no documents. Rows outside all documents
    // are fully masked. With a fill of -infinity, numbers of a document, even NaN, never reach rows
    // of another.
    std::vector<std::vector<document>> documents = {};
};

// Writes the mask of one sequence as rows x keys bytes, 1 if unmasked, for inspection and for
// interfaces that need an array. Throws argument_error, and writes nothing, for contradictory
// rules, a `sequence` outside [0, sequences), negative extents, extents above 2^48 or with a
// product beyond 64 bits, and a null `mask` unless rows or keys are 0.
MASKWISE_API void write_mask(const mask_rules& rules, std::int64_t sequences, std::int64_t sequence,
                             std::int64_t rows, std::int64_t keys, std::byte* mask);

// The same as a bias for the scores of one of `heads` heads: -infinity if masked, else minus slope
// times distance, or 0 without slopes. Also throws for a `head` outside [0, heads).
MASKWISE_API void write_bias(const mask_rules& rules, std::int64_t sequences, std::int64_t sequence,
                             std::int64_t heads, std::int64_t head, std::int64_t rows,
                             std::int64_t keys, float* bias);

} // namespace v1
} // namespace maskwise
