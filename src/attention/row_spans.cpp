#include "attention/row_spans.hpp"

#include "base/checked.hpp"
#include "base/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace maskwise {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 48; // sums of several fit int64

[[noreturn]] void refuse(const std::string& fault) {
    throw argument_error("mask rules: " + fault);
}

void require_size(const char* name, std::int64_t value, std::int64_t least) {
    if (value < least || value > most)
        refuse(std::string(name) + " is " + std::to_string(value) + ", expected " +
               std::to_string(least) + " to 2^48");
}

template <class Value>
void require_sequences(const char* name, const std::vector<Value>& values, std::int64_t sequences) {
    const auto count = std::ssize(values);
    if (count > 1 && count != sequences)
        refuse(std::string(name) + " has " + std::to_string(count) + " elements, expected one or " +
               std::to_string(sequences));
}

void check_sequences(const char* name, const std::vector<std::int64_t>& values,
                     std::int64_t sequences, std::int64_t least) {
    require_sequences(name, values, sequences);
    for (const std::int64_t value : values) require_size(name, value, least);
}

void check_documents(const std::vector<document>& documents) {
    std::int64_t row = 0;
    for (const document& one : documents) {
        for (const std::int64_t value : {one.first_row, one.rows, one.first_key, one.keys})
            require_size("a document's extent", value, 0);
        if (one.first_row < row)
            refuse("a document begins at row " + std::to_string(one.first_row) +
                   ", expected no row before " + std::to_string(row));
        row = one.first_row + one.rows;
    }
}

template <class Value>
const Value& of_sequence(const std::vector<Value>& values, std::int64_t sequence) {
    return values[values.size() == 1 ? 0 : static_cast<std::size_t>(sequence)];
}

std::int64_t value_for(const std::vector<std::int64_t>& values, std::int64_t sequence,
                       std::int64_t otherwise) {
    return values.empty() ? otherwise : of_sequence(values, sequence);
}

struct numbered_document {
    document extents;
    std::int64_t number; // odd in a document, else even
};

// Documents are ordered by row. A document may have no rows.
numbered_document document_of(const std::vector<document>& documents, std::int64_t row) {
    const auto candidate = std::ranges::partition_point(
        documents, [row](const document& one) { return one.first_row + one.rows <= row; });
    const std::int64_t number = 2 * (candidate - documents.begin());
    if (candidate == documents.end() || row < candidate->first_row) return {document{}, number};
    return {*candidate, number + 1};
}

key_span common(const key_span& a, const key_span& b) {
    return {std::max(a.first, b.first), std::min(a.last, b.last)};
}

std::int64_t floor_divide(std::int64_t value, std::int64_t by) {
    return value / by - (value % by < 0 ? 1 : 0);
}

key_span chunks_of(const key_chunks& chunks, std::int64_t position, std::int64_t origin) {
    const std::int64_t chunk = floor_divide(position - origin, chunks.size);
    const std::int64_t begin = origin + chunk * chunks.size;
    // No chunk precedes chunk 0. Without this bound, earlier * size might overflow.
    const std::int64_t earlier = std::min(chunks.earlier, std::max<std::int64_t>(chunk, 0) + 1);
    return {begin - earlier * chunks.size, begin + chunks.size};
}

key_span window_of(const key_window& window, std::int64_t position) {
    using limits = std::numeric_limits<std::int64_t>;
    return {window.left < 0 ? limits::min() : position - window.left,
            window.right < 0 ? limits::max() : position + window.right + 1};
}

struct index_of {
    const char* name;
    std::int64_t count, index;
};

void require_index(const index_of& one) {
    if (one.index < 0 || one.index >= one.count)
        refuse(std::string(one.name) + " index " + std::to_string(one.index) + ", expected 0 to " +
               std::to_string(one.count - 1));
}

// Whether the mask has elements. Throws as write_mask does.
bool is_writable(const mask_rules& rules, const index_of& sequence, std::int64_t rows,
                 std::int64_t keys, const void* dst) {
    check_rules(rules, sequence.count);
    require_index(sequence);
    require_size("rows", rows, 0);
    require_size("keys", keys, 0);
    if (rows == 0 || keys == 0) return false;
    const std::string shape = std::to_string(rows) + " rows x " + std::to_string(keys) + " keys";
    if (!checked_multiply(rows, keys)) refuse(shape + " do not fit 64 bits");
    if (dst == nullptr) refuse("the address of a mask of " + shape + " is null");
    return true;
}

template <class Visit>
void for_each_span(const row_spans& row, const Visit& visit) {
    for (const key_span& span : {row.main, row.second})
        if (!span.is_empty()) visit(span, row.position);
}

// Merges spans that overlap or touch.
row_spans joined(const key_span& main, const key_span& second) {
    if (second.is_empty()) return {main, {}};
    if (main.is_empty()) return {second, {}};
    if (main.first > second.last || second.first > main.last) return {main, second};
    return {{std::min(main.first, second.first), std::max(main.last, second.last)}, {}};
}

row_spans common(const row_spans& a, const row_spans& b) {
    return {common(a.main, b.main), common(a.second, b.second)};
}

// Extends `any` to the hull of both spans. Returns whether the hull has keys outside both spans.
bool widen(key_span& any, const key_span& by) {
    if (by.is_empty()) return false;
    const bool is_apart = !any.is_empty() && (by.first > any.last || any.first > by.last);
    any =
        any.is_empty() ? by : key_span{std::min(any.first, by.first), std::max(any.last, by.last)};
    return is_apart;
}

bool widen(row_spans& any, const row_spans& by) {
    const bool is_apart = widen(any.main, by.main);
    return widen(any.second, by.second) || is_apart;
}

} // namespace

void check_rules(const mask_rules& rules, std::int64_t sequences) {
    check_sequences("offsets", rules.offsets, sequences, -most);
    check_sequences("prefixes", rules.prefixes, sequences, 0);
    check_sequences("starts", rules.starts, sequences, 0);
    check_sequences("lengths", rules.lengths, sequences, 0);
    if (rules.window) {
        require_size("window.left", rules.window->left, -1);
        require_size("window.right", rules.window->right, -1);
        require_size("window.first_keys", rules.window->first_keys, 0);
        if (rules.window->first_keys > 0 && !rules.prefixes.empty())
            refuse("window.first_keys and prefixes exclude each other");
    }
    if (rules.chunks) {
        require_size("chunks.size", rules.chunks->size, 1);
        require_size("chunks.earlier", rules.chunks->earlier, 0);
    }
    require_sequences("documents", rules.documents, sequences);
    for (const auto& documents : rules.documents) check_documents(documents);
}

void check_slopes(const mask_rules& rules, std::int64_t sequences, std::int64_t heads) {
    const auto count = std::ssize(rules.slopes);
    if (count != 0 && count != heads && count != checked_multiply(sequences, heads))
        refuse("slopes has " + std::to_string(count) + " elements, expected one for each of " +
               std::to_string(heads) + " heads, or for each sequence and head");
    for (const float slope : rules.slopes)
        if (!std::isfinite(slope)) refuse("a slope is " + std::to_string(slope));
}

std::int64_t length_of(const mask_rules* rules, std::int64_t sequence, std::int64_t keys) {
    return rules == nullptr ? keys : std::min(keys, value_for(rules->lengths, sequence, keys));
}

bool is_uniform(const mask_rules& rules) {
    return std::max({rules.offsets.size(), rules.prefixes.size(), rules.starts.size(),
                     rules.lengths.size(), rules.documents.size()}) <= 1;
}

sequence_rules::sequence_rules(const mask_rules& rules, std::int64_t sequence, std::int64_t rows,
                               std::int64_t keys)
    : rules_(rules),
      documents_(rules.documents.empty() ? nullptr : &of_sequence(rules.documents, sequence)),
      unpadded_{value_for(rules.starts, sequence, 0),
                std::min(keys, value_for(rules.lengths, sequence, keys))},
      offset_(value_for(rules.offsets, sequence, 0)), rows_(rows),
      prefix_(value_for(rules.prefixes, sequence, 0)) {}

row_spans sequence_rules::spans_of(std::int64_t row) const {
    key_span allowed = unpadded_;
    std::int64_t origin = allowed.first, ahead = allowed.last - rows_, first_row = 0, first_key = 0;
    std::int64_t number = 0;
    if (documents_ != nullptr) {
        const auto [extents, document_number] = document_of(*documents_, row);
        number = document_number;
        allowed = common(allowed, {extents.first_key, extents.first_key + extents.keys});
        origin = extents.first_key;
        if (rules_.in_documents) {
            first_row = extents.first_row;
            first_key = extents.first_key;
            ahead = extents.keys - extents.rows;
        }
    }
    const std::int64_t position =
        row - first_row + first_key + (rules_.from_end ? ahead : 0) + offset_;
    key_span kept = allowed;
    if (rules_.causal) kept.last = std::min(kept.last, position + 1);
    if (rules_.chunks) kept = common(kept, chunks_of(*rules_.chunks, position, origin));
    key_span second;
    if (rules_.window) {
        second = common(kept, {origin, origin + rules_.window->first_keys});
        kept = common(kept, window_of(*rules_.window, position));
    }
    if (!rules_.prefixes.empty()) second = common(allowed, {origin, origin + prefix_});
    row_spans spans = joined(kept, second);
    spans.position = position;
    spans.document = number;
    return spans;
}

void spans_summary::add(const row_spans& row, bool is_first) {
    all = is_first ? row : common(all, row);
    if (is_first) any = {};
    has_gaps |= widen(any, row);
}

void spans_summary::add(const spans_summary& rows, bool is_first) {
    all = is_first ? rows.all : common(all, rows.all);
    if (is_first) any = {};
    const bool is_apart = widen(any, rows.any);
    has_gaps = has_gaps || rows.has_gaps || is_apart;
}

tile_mask spans_summary::state(std::int64_t first_key, std::int64_t last_key) const {
    if (all.main.holds(first_key, last_key) || all.second.holds(first_key, last_key))
        return tile_mask::kept;
    const bool is_met =
        any.main.meets(first_key, last_key) || any.second.meets(first_key, last_key);
    return is_met ? tile_mask::mixed : tile_mask::masked;
}

key_span spans_summary::hull() const {
    key_span whole = any.main;
    widen(whole, any.second);
    return whole;
}

inline namespace v1 {

void write_mask(const mask_rules& rules, std::int64_t sequences, std::int64_t sequence,
                std::int64_t rows, std::int64_t keys, std::byte* dst) {
    if (!is_writable(rules, {"sequence", sequences, sequence}, rows, keys, dst)) return;
    const sequence_rules keys_of_rows(rules, sequence, rows, keys);
    for (std::int64_t row = 0; row < rows; ++row, dst += keys) {
        std::fill_n(dst, keys, std::byte{0});
        for_each_span(keys_of_rows.spans_of(row), [&](const key_span& span, std::int64_t) {
            std::fill(dst + span.first, dst + span.last, std::byte{1});
        });
    }
}

void write_bias(const mask_rules& rules, std::int64_t sequences, std::int64_t sequence,
                std::int64_t heads, std::int64_t head, std::int64_t rows, std::int64_t keys,
                float* dst) {
    require_index({"head", heads, head});
    check_slopes(rules, sequences, heads);
    if (!is_writable(rules, {"sequence", sequences, sequence}, rows, keys, dst)) return;
    const float slope = rules.slopes.empty() ? 0 : slope_of(rules, sequence, heads, head);
    const sequence_rules keys_of_rows(rules, sequence, rows, keys);
    for (std::int64_t row = 0; row < rows; ++row, dst += keys) {
        std::fill_n(dst, keys, -std::numeric_limits<float>::infinity());
        for_each_span(keys_of_rows.spans_of(row), [&](const key_span& span, std::int64_t position) {
            for (std::int64_t key = span.first; key < span.last; ++key)
                dst[key] = -slope * static_cast<float>(std::abs(position - key));
        });
    }
}

} // namespace v1
} // namespace maskwise
