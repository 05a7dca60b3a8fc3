#include "attention/tile_spans.hpp"

#include <algorithm>
#include <memory>

namespace maskwise {

void mark_kept(const row_spans& row, std::int64_t first_key, std::span<bool> kept) {
    for (const key_span& span : {row.main, row.second}) {
        const auto first = std::max<std::int64_t>(0, span.first - first_key);
        const auto last = std::min<std::int64_t>(std::ssize(kept), span.last - first_key);
        if (first < last) std::fill(kept.begin() + first, kept.begin() + last, true);
    }
}

tile_spans::tile_spans(const tile_plan& plan, const mask_rules* rules, float* scratch)
    : plan_(plan), rules_(rules), spans_(reinterpret_cast<row_spans*>(scratch + plan.worker.spans)),
      summaries_(reinterpret_cast<spans_summary*>(scratch + plan.worker.summaries)),
      panel_spans_(reinterpret_cast<std::int32_t*>(scratch + plan.worker.panel_spans)) {}

void tile_spans::find(const query_rows& rows, const shape_position& position) {
    if (rules_ == nullptr) return;
    find_rows(rows, position);
    summarize(rows.count);
}

// Folded heads are consecutive. An index of the outermost dimension is a sequence.
void tile_spans::find_rows(const query_rows& rows, const shape_position& position) {
    const std::int64_t first = plan_.outer.empty() ? 0 : position[0];
    const bool is_folded = plan_.outer.rank() == 1, has_sequences = !is_uniform(*rules_);
    std::int64_t head = rows.first / plan_.query_rows, query = rows.first % plan_.query_rows;
    for (std::int64_t row = 0; row < rows.count; ++head, query = 0) {
        const std::int64_t last = std::min(rows.count, row + plan_.query_rows - query);
        const sequence_rules rules(*rules_, is_folded ? first * plan_.folded_heads + head : first,
                                   plan_.query_rows, plan_.keys);
        for (; row < last; ++row, ++query) {
            row_spans& spans = *std::construct_at(spans_ + row, rules.spans_of(query));
            // Adjacent sequences get different document numbers.
            if (is_folded && has_sequences && head % 2 != 0) spans.document = ~spans.document;
        }
    }
}

void tile_spans::summarize(std::int64_t rows) {
    spans_summary& whole = *std::construct_at(summaries_ + plan_.tile_rows / plan_.panel);
    for (std::int64_t first = 0; first < rows; first += plan_.panel) {
        spans_summary& summary = *std::construct_at(summaries_ + first / plan_.panel);
        for (std::int64_t row = first; row < std::min(rows, first + plan_.panel); ++row) {
            summary.add(spans_[row], row == first);
            summary.has_documents |= row > first && begins_document(row);
        }
        whole.add(summary, first == 0);
    }
    rows_ = rows;
    whole_ = whole.state(0, plan_.keys) == tile_mask::kept ? nullptr : &whole;
}

tile_mask tile_spans::state(std::int64_t first_key, std::int64_t last_key) const {
    const tile_mask state = whole_->state(first_key, last_key);
    if (state != tile_mask::mixed || !whole_->has_gaps) return state;
    const bool is_met = std::any_of(spans_, spans_ + rows_, [&](const row_spans& row) {
        return row.main.meets(first_key, last_key) || row.second.meets(first_key, last_key);
    });
    return is_met ? tile_mask::mixed : tile_mask::masked;
}

void tile_spans::write_spans(panel_scores& scores, std::int64_t panel,
                             std::int64_t first_key) const {
    const auto relative = [&](std::int64_t key) {
        return static_cast<std::int32_t>(std::clamp<std::int64_t>(key - first_key, 0, scores.keys));
    };
    const auto write = [&](std::int32_t* dst, key_span row_spans::*which) {
        const row_spans* const spans = spans_ + panel * plan_.panel;
        for (std::int64_t q = 0; q < scores.queries; ++q) {
            const key_span& span = spans[q].*which;
            dst[q] = relative(span.first);
            dst[q + plan_.panel] = std::max(0, relative(span.last) - dst[q]);
        }
    };
    scores.spans = panel_spans_;
    write(panel_spans_, &row_spans::main);
    scores.has_second_span = has_second(panel);
    if (scores.has_second_span) write(panel_spans_ + 2 * plan_.panel, &row_spans::second);
}

} // namespace maskwise
