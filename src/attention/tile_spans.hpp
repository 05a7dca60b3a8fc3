#pragma once

#include "attention/row_spans.hpp"
#include "attention/tile_plan.hpp"

#include <span>

namespace maskwise {

// Consecutive queries of a row tile.
struct query_rows {
    std::int64_t first, count;
};

// Sets kept[i] if the spans hold key first_key + i.
void mark_kept(const row_spans& row, std::int64_t first_key, std::span<bool> kept);

// The keys that the rules do not mask, for the queries of one row tile.
class tile_spans {
public:
    // `rules` may be null. Spans are stored in `scratch`, which has room for plan.worker.floats.
    tile_spans(const tile_plan& plan, const mask_rules* rules, float* scratch);

    // Finds the spans of `rows` of the head at `position`.
    void find(const query_rows& rows, const shape_position& position);

    // Whether the rules mask a key in any row. state() and hull() may be called only if true.
    bool masks() const { return whole_ != nullptr; }
    tile_mask state(std::int64_t first_key, std::int64_t last_key) const;
    // The rules mask all keys outside the hull, in each row of the row tile or of the panel.
    key_span hull() const { return whole_->hull(); }
    key_span hull(std::int64_t panel) const { return summaries_[panel].hull(); }
    bool is_whole(std::int64_t panel) const { return summaries_[panel].is_whole(); }
    // The position of a row. `row` counts from the tile's first row. Requires rules.
    std::int64_t position(std::int64_t row) const { return spans_[row].position; }
    // Calls visit(first, last, kept) for each document's queries [first, last) of the panel.
    // kept[i] is true if key first_key + i is unmasked for one of these queries.
    template <typename Visit>
    void for_each_document(const query_rows& queries, std::int64_t first_key, std::int64_t keys,
                           Visit visit) const {
        for (std::int64_t first = 0, last = 0; first < queries.count; first = last) {
            bool marks[most_tile_keys] = {};
            const std::span<bool> kept(marks, static_cast<std::size_t>(keys));
            do {
                mark_kept(spans_[queries.first + last], first_key, kept);
                ++last;
            } while (last < queries.count && !begins_document(queries.first + last));
            visit(first, last, kept);
        }
    }
    // Sets the spans of each query of the panel in `scores`, whose keys begin at `first_key`.
    void write_spans(panel_scores& scores, std::int64_t panel, std::int64_t first_key) const;

private:
    void find_rows(const query_rows& rows, const shape_position& position);
    bool begins_document(std::int64_t row) const {
        return spans_[row].document != spans_[row - 1].document;
    }
    void summarize(std::int64_t rows);
    bool has_second(std::int64_t panel) const { return !summaries_[panel].any.second.is_empty(); }

    const tile_plan& plan_;
    const mask_rules* rules_;
    row_spans* spans_;         // one per row
    spans_summary* summaries_; // one per panel, then one of all rows
    std::int32_t* panel_spans_;
    std::int64_t rows_ = 0;
    const spans_summary* whole_ = nullptr; // summary of all rows; null if the rules mask no key
};

} // namespace maskwise
