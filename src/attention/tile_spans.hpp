#pragma once

#include "attention/row_spans.hpp"
#include "attention/tile_plan.hpp"

#include <optional>

namespace maskwise {

// Some queries of a head, of which each panel is a part.
struct query_rows {
    std::int64_t first, count;
};

// A bit for each of some keys that the spans hold.
std::uint64_t kept_bits(const row_spans& row, std::int64_t first_key, std::int64_t keys);

// The keys that the queries of one row tile keep: by rules, and up to their own number moved by the
// offset.
class tile_spans {
public:
    // `rules` may be null. Spans lie in `scratch`, which has the plan's room for a worker.
    tile_spans(const tile_plan& plan, const mask_rules* rules,
               const std::optional<std::int64_t>& causal_offset, float* scratch);

    // Of rows of the head that lies there.
    void find(const query_rows& rows, const shape_position& position);

    // Whether some row does not keep all keys. The others are asked only then.
    bool masks() const { return whole_ != nullptr; }
    tile_mask state(std::int64_t first_key, std::int64_t last_key) const;
    // Keys apart from which no row keeps one.
    key_span hull() const { return whole_->hull(); }
    // Keys apart from which no query of a panel keeps one.
    key_span hull(std::int64_t panel) const { return summaries_[panel].hull(); }
    bool is_whole(std::int64_t panel) const { return summaries_[panel].is_whole(); }
    // visit(first, last, kept) for queries [first, last) of the panel that are of one document: a
    // bit for each of the keys from first_key on that one of them keeps.
    template <typename Visit>
    void for_each_document(const query_rows& queries, std::int64_t first_key, std::int64_t keys,
                           Visit visit) const {
        for (std::int64_t first = 0, last = 0; first < queries.count; first = last) {
            std::uint64_t kept = 0;
            do {
                kept |= kept_bits(spans_[queries.first + last], first_key, keys);
                ++last;
            } while (last < queries.count && !begins_document(queries.first + last));
            visit(first, last, kept);
        }
    }
    // Says which of the scores' keys, from that key on, each query of the panel keeps.
    void add_to(panel_scores& scores, std::int64_t panel, std::int64_t first_key) const;

private:
    void find_rows(const query_rows& rows, const shape_position& position);
    bool begins_document(std::int64_t row) const {
        return spans_[row].document != spans_[row - 1].document;
    }
    void summarize(std::int64_t rows);
    bool has_second(std::int64_t panel) const { return !summaries_[panel].any.second.is_empty(); }

    const tile_plan& plan_;
    const mask_rules* rules_;
    const std::optional<std::int64_t> causal_offset_;
    row_spans* spans_;         // of the rows
    spans_summary* summaries_; // of the panels, then of all rows
    std::int32_t* of_panel_;
    std::int64_t rows_ = 0;
    const spans_summary* whole_ = nullptr; // what all rows have in common, where they mask
};

} // namespace maskwise
