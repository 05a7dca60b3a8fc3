// Maskwise: which keys each row of attention keeps, by rules instead of an array of rows x keys.
//
//   mask_rules rules;
//   rules.causal = true;
//   rules.window = {.left = 127};           // each row keeps its own key and 127 before it
//   rules.lengths = {900, 1024};           // of two sequences; the first is padded
//   attention.execute({.query = q, .key = k, .value = v, .dst = out, .rules = &rules});
#pragma once

#include "maskwise/maskwise.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace maskwise {
inline namespace v1 {

// Of so many keys on either side of a row's position; -1: all. As flash_attn's window_size,
// and |position - key| <= W is {W, W}. transformers' sliding_window of W, key > position - W below
// a causal boundary, is {W - 1}.
struct key_window {
    std::int64_t left = -1, right = -1;
    std::int64_t first_keys = 0; // the first keys of a sequence are kept whatever the window says
};

// A row keeps the keys of its own chunk and of so many earlier ones.
struct key_chunks {
    std::int64_t size = 1, earlier = 0;
};

// Rows that keep a run of keys and no others.
struct document {
    std::int64_t first_row = 0, rows = 0, first_key = 0, keys = 0;
};

// A key is kept where every rule that is given keeps it. A vector has one element for all, or one
// for each index of dst's first dimension, which are called sequences here. Numbers are at most
// 2^48.
//
// The position of row r is r + its offset; with `from_end` so far ahead that the last row's is that
// of the last key; with `in_documents` rows, keys and their ends are the document's. Chunks,
// prefixes and first_keys count from the first key of the document, or of the sequence.
struct mask_rules {
    std::vector<std::int64_t> offsets = {}; // none: 0
    bool from_end = false;
    bool in_documents = false;
    bool causal = false; // key <= position
    std::optional<key_window> window = {};
    std::optional<key_chunks> chunks = {};
    std::vector<std::int64_t> prefixes = {}; // so many keys are kept by all rows of the sequence or
                                             // document, whatever causal, window and chunks say
    std::vector<std::int64_t> starts = {}, lengths = {}; // of keys: start <= key < length
    // Of each sequence by rows, apart from each other; other rows keep nothing. None: no documents.
    // With a fill of -infinity no number of a document, not even NaN, reaches rows of another.
    std::vector<std::vector<document>> documents = {};
};

// The rules of one sequence written down: rows x keys bytes, 1 where a key is kept, for looking at
// them and for interfaces that take arrays only. Throws argument_error, and writes nothing, for
// rules that contradict themselves, a `sequence` outside [0, sequences), negative extents, extents
// above 2^48 or whose product is beyond 64 bits, and for a null address unless rows or keys are 0.
MASKWISE_API void write_mask(const mask_rules& rules, std::int64_t sequences, std::int64_t sequence,
                             std::int64_t rows, std::int64_t keys, std::byte* to);

} // namespace v1
} // namespace maskwise
