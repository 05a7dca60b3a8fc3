#pragma once

#include "attention/mask_map.hpp"
#include "maskwise/mask_rules.hpp"

#include <cstdint>

namespace maskwise {

struct attention_data;

// Keys [first, last).
struct key_span {
    std::int64_t first = 0, last = 0;

    bool is_empty() const { return first >= last; }
    bool holds(std::int64_t from, std::int64_t to) const { return first <= from && to <= last; }
    bool meets(std::int64_t from, std::int64_t to) const {
        return !is_empty() && first < to && from < last;
    }
};

// What a row keeps: both.
struct row_spans {
    key_span main, second;
};

// Where a row stands.
struct row_place {
    std::int64_t sequence, row; // of query
    std::int64_t rows, keys;    // of the sequence
};

// Throws argument_error for rules that contradict themselves, counts beyond 2^48, and vectors of
// another length than one or `sequences`.
void check_rules(const mask_rules& rules, std::int64_t sequences);

// By rules that were checked.
row_spans spans_of_row(const mask_rules& rules, const row_place& at);

// What some rows keep: all of them (no key but these), and any of them.
struct spans_summary {
    row_spans all, any;

    void add(const row_spans& row, bool is_first);
    tile_mask state(std::int64_t first_key, std::int64_t last_key) const;
    key_span hull() const; // of `any`
};

} // namespace maskwise
