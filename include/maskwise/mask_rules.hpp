// Maskwise: attention masks as rules instead of an array of rows x keys.
//
//   mask_rules rules;
//   rules.causal = true;
//   rules.window = {.left = 127}; // each row attends to its own key and 127 keys before it
//   rules.lengths = {900, 1024};  // two sequences; the first is padded
//   attention.execute({.query = q, .key = k, .value = v, .dst = out, .rules = &rules});
#pragma once

#include "maskwise/maskwise.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace maskwise {
inline namespace v1 {

// A sliding window. A row attends to the key at the row's position, `left` keys before and `right`
// keys after this key; -1 means all. flash_attn's window_size is {left, right}. A causal
// sliding_window of W in transformers is {W - 1}.
struct key_window {
    std::int64_t left = -1, right = -1;
    // The first `first_keys` keys of the sequence or document are always in the window. Must be 0
    // if there are prefixes.
    std::int64_t first_keys = 0;
};

// Keys are divided into chunks of `size`. A row attends to the chunk at the row's position and to
// the previous `earlier` chunks.
struct key_chunks {
    std::int64_t size = 1, earlier = 0;
};

// The rows [first_row, first_row + rows) attend only to the keys [first_key, first_key + keys).
struct document {
    std::int64_t first_row = 0, rows = 0, first_key = 0, keys = 0;
};

// A key is unmasked if every rule that is set allows the key. A vector has one element for all
// sequences, or one per sequence (index of dst's first dimension). Integers are at most 2^48 in
// magnitude.
//
// position(r) = r + offset. With `from_end`, positions are shifted so that the last row aligns with
// the last key that is not padding. With `in_documents`, rows, keys and the shift are counted
// within each document. Chunks, prefixes and first_keys count from the document's first key;
// without documents, from the sequence's start.
struct mask_rules {
    std::vector<std::int64_t> offsets = {}; // empty: 0
    bool from_end = false;
    bool in_documents = false;
    bool causal = false; // key <= position
    std::optional<key_window> window = {};
    std::optional<key_chunks> chunks = {};
    // The number of first keys that all rows attend to, even if causal, window or chunks mask these
    // keys.
    std::vector<std::int64_t> prefixes = {};
    std::vector<std::int64_t> starts = {}, lengths = {}; // start <= key < length
    // ALiBi: slope * |position - key| is subtracted from each score after the soft cap. One finite
    // slope per head (dst's dimension before the rows), or one per sequence and head; empty: none.
    // Must be empty if there is a bias.
    std::vector<float> slopes = {};
    // Each sequence's documents, ordered by row, with disjoint rows; empty: no documents. Rows
    // outside all documents are fully masked. With a fill of -infinity, a document's keys and
    // values (even NaN) never affect another document's rows.
    std::vector<std::vector<document>> documents = {};
};

// Writes one sequence's mask as rows x keys bytes: 1 if unmasked, else 0. Throws argument_error for
// contradictory rules, a `sequence` outside [0, sequences), negative extents, extents above 2^48 or
// with a product beyond 64 bits, and a null `mask` unless rows or keys are 0. After an error,
// nothing is written.
MASKWISE_API void write_mask(const mask_rules& rules, std::int64_t sequences, std::int64_t sequence,
                             std::int64_t rows, std::int64_t keys, std::byte* mask);

// Writes the rules as a bias for one head's scores: -infinity if masked, else -slope * |position -
// key|, or 0 without slopes. Throws as write_mask does. Also throws argument_error for a `head`
// outside [0, heads), for slopes that are not finite, and for a wrong number of slopes.
MASKWISE_API void write_bias(const mask_rules& rules, std::int64_t sequences, std::int64_t sequence,
                             std::int64_t heads, std::int64_t head, std::int64_t rows,
                             std::int64_t keys, float* bias);

} // namespace v1
} // namespace maskwise
