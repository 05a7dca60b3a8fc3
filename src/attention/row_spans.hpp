#pragma once

#include "attention/mask_map.hpp"
#include "base/key_span.hpp"
#include "maskwise/mask_rules.hpp"

#include <cstdint>
#include <vector>

namespace maskwise {

// The keys of a row that the rules do not mask: the union of `main` and `second`.
struct row_spans {
    key_span main, second;
    std::int64_t position = 0;
    std::int64_t document = 0; // differs between adjacent rows of different documents
};

// Throws argument_error for contradictory rules, for numbers out of range or above 2^48, and for
// vectors whose size is not 0, 1 or `sequences`. Does not check slopes.
void check_rules(const mask_rules& rules, std::int64_t sequences);

// Whether all sequences have the same rules: no vector except `slopes` has several elements.
bool is_uniform(const mask_rules& rules);

// Throws argument_error if a slope is not finite, or if the number of slopes is not 0, `heads` or
// sequences * heads.
void check_slopes(const mask_rules& rules, std::int64_t sequences, std::int64_t heads);

// Returns the sequence's number of keys before the padding at its end, at most `keys`.
std::int64_t length_of(const mask_rules* rules, std::int64_t sequence, std::int64_t keys);

inline bool has_slopes(const mask_rules* rules) {
    return rules != nullptr && !rules->slopes.empty();
}

inline float slope_of(const mask_rules& rules, std::int64_t sequence, std::int64_t heads,
                      std::int64_t head) {
    const bool are_shared = std::ssize(rules.slopes) == heads;
    return rules.slopes[static_cast<std::size_t>((are_shared ? 0 : sequence * heads) + head)];
}

// The rules for one sequence of `rows` x `keys`. `rules` must have passed check_rules and must
// outlive this object.
class sequence_rules {
public:
    sequence_rules(const mask_rules& rules, std::int64_t sequence, std::int64_t rows,
                   std::int64_t keys);

    row_spans spans_of(std::int64_t row) const;

private:
    const mask_rules& rules_;
    const std::vector<document>* documents_; // null: the rules have none
    key_span unpadded_;                      // the keys that are not padding
    std::int64_t offset_, rows_;
    std::int64_t prefix_; // in keys
};

// Summary of a group of rows. Keys in `all` are unmasked in every row; keys outside `any` are
// masked in every row. If has_gaps, some keys in `any` are also masked in every row, for example
// between documents.
struct spans_summary {
    row_spans all, any;
    bool has_gaps = false;
    bool has_documents = false; // the rows are of several documents or sequences

    // Whether all rows belong to one document and each key of the hull is unmasked in some row.
    bool is_whole() const { return !has_gaps && !has_documents && any.second.is_empty(); }

    void add(const row_spans& row, bool is_first);
    void add(const spans_summary& rows, bool is_first);
    tile_mask state(std::int64_t first_key, std::int64_t last_key) const;
    key_span hull() const; // of `any`
};

} // namespace maskwise
