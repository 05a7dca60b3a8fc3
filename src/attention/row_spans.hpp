#pragma once

#include "attention/mask_map.hpp"
#include "maskwise/mask_rules.hpp"

#include <cstdint>
#include <vector>

namespace maskwise {

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
    std::int64_t document = 0; // rows side by side of different documents have different numbers
};

// Throws argument_error for rules that contradict themselves, counts beyond 2^48, and vectors of
// another length than one or `sequences`.
void check_rules(const mask_rules& rules, std::int64_t sequences);

// What the rules, which were checked and outlive it, say of one sequence of so many rows and keys.
class sequence_rules {
public:
    sequence_rules(const mask_rules& rules, std::int64_t sequence, std::int64_t rows,
                   std::int64_t keys);

    row_spans spans_of(std::int64_t row) const;

private:
    const mask_rules& rules_;
    const std::vector<document>* documents_; // null: there are none
    key_span given_;                         // what padding leaves
    std::int64_t offset_, rows_;
    std::int64_t prefix_; // its keys
};

// What some rows keep: all of them (no key but these), and any of them; with gaps no row may keep
// some keys of `any`, as where documents lie apart.
struct spans_summary {
    row_spans all, any;
    bool has_gaps = false;
    bool has_documents = false; // rows of more than one document or sequence

    // Whether all rows are of one document and each key of the hull is kept by one of them.
    bool is_whole() const { return !has_gaps && !has_documents && any.second.is_empty(); }

    void add(const row_spans& row, bool is_first);
    tile_mask state(std::int64_t first_key, std::int64_t last_key) const;
    key_span hull() const; // of `any`
};

} // namespace maskwise
