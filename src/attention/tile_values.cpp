// Values and their products with weights.

#include "attention/tile_operands.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace maskwise {

strided_matrix tile_operands::floats_of_values(const key_tile& keys) const {
    if (plan_.copies_value_as_floats()) return values_of(keys);
    const strided_matrix rows = matrix(plan_.value, addresses_.value, keys.first);
    if (plan_.has_float_values()) return rows;
    return floats(rows, keys.keys, plan_.columns, part(plan_.worker.values));
}

strided_matrix tile_operands::values_of(const key_tile& keys) const {
    const strided_matrix rows = matrix(plan_.value, addresses_.value, keys.first);
    if (!plan_.copies_value()) return rows;
    return kept_copy(plan_.worker.value_copies, keys, rows, [&](float* dst) {
        const bool repacks = plan_.repacks_value();
        const strided_matrix tile = whole_tile(plan_.value, addresses_.value, keys, rows,
                                               repacks ? part(plan_.worker.gathered) : dst);
        if (!repacks) return tile;
        if (!plan_.weights_in_pairs) return floats(tile, keys.keys, plan_.columns, dst);
        return kernels_.load_pairs(tile, keys.keys, plan_.columns, ahead_bytes_of(keys, tile) != 0,
                                   dst);
    });
}

// A masked key has weight 0, but its value may be NaN, so the value must not be multiplied. If a
// run contains only one key of a pair, the other key's values are temporarily 0.
void tile_operands::add_run(const key_tile& keys, const panel_scores& weights,
                            const strided_matrix& value, const key_span& run,
                            const value_sums& sums) const {
    const std::int64_t step = weights.in_pairs ? 2 : 1, first = run.first / step;
    const bool cuts_first = run.first % step != 0;
    const bool cuts_last = run.last % step != 0 && run.last < keys.keys;
    if (cuts_first) write_half(keys, run.first - 1, value, false);
    if (cuts_last) write_half(keys, run.last, value, false);
    const auto multiply =
        weights.in_pairs ? kernels_.multiply_value_pairs : kernels_.multiply_values;
    multiply({.a = value.first + first * value.row_bytes,
              .row_bytes = value.column_bytes,
              .step_bytes = value.row_bytes,
              .rows = plan_.columns,
              .steps = (run.last + step - 1) / step - first,
              .b = weights.scores + (first - weights.first_key / step) * plan_.panel,
              .c = sums.values,
              .factor = sums.factor,
              .queries = weights.queries,
              .accumulates = sums.accumulates,
              .type = value.type,
              .ahead_bytes = ahead_bytes_of(keys, value)});
    if (cuts_first) write_half(keys, run.first - 1, value, true);
    if (cuts_last) write_half(keys, run.last, value, true);
}

void tile_operands::write_half(const key_tile& keys, std::int64_t key, const strided_matrix& pairs,
                               bool is_kept) const {
    constexpr std::int64_t half_bytes = sizeof(std::uint16_t);
    const std::uint16_t zero = 0;
    is_kept = is_kept && keys.first + key < length_; // padding may have no page
    const std::byte* const src =
        is_kept ? matrix(plan_.value, addresses_.value, keys.first + key).first : nullptr;
    std::byte* const dst = pairs.first + key / 2 * pairs.row_bytes + key % 2 * half_bytes;
    for (std::int64_t c = 0; c < plan_.columns; ++c)
        std::memcpy(dst + c * pairs.column_bytes,
                    is_kept ? static_cast<const void*>(src + c * half_bytes) : &zero, half_bytes);
}

void tile_operands::add_values(const panel_rows& panel, const key_tile& keys,
                               const panel_scores& weights, const strided_matrix& value,
                               const value_sums& sums) const {
    if (!leaves_keys_out(keys) || spans_.is_whole(panel.number))
        add_run(keys, weights, value, kept_keys(panel, keys), sums);
    else
        add_documents(panel, keys, weights, value, sums);
}

// Multiplies for all queries up to the document's last query, but adds only the sums of the
// document's queries. `factor` is applied after the last run, so the result is bit-identical to a
// product over all keys of the tile.
void tile_operands::add_documents(const panel_rows& panel, const key_tile& keys,
                                  const panel_scores& weights, const strided_matrix& value,
                                  const value_sums& sums) const {
    float* const document_sums = part(plan_.worker.work);
    const query_rows queries{panel.first - rows_.first, panel.queries};
    spans_.for_each_document(
        queries, keys.first, keys.keys,
        [&](std::int64_t first, std::int64_t last, std::span<const bool> kept) {
            auto begin = std::ranges::find(kept, true);
            if (begin == kept.end()) return;
            if (sums.accumulates)
                std::copy_n(sums.values, plan_.panel * plan_.columns, document_sums);
            panel_scores document_weights = weights;
            document_weights.queries = last;
            for (bool accumulates = sums.accumulates; begin != kept.end(); accumulates = true) {
                const auto end = std::find(begin, kept.end(), false);
                add_run(keys, document_weights, value, {begin - kept.begin(), end - kept.begin()},
                        {document_sums, nullptr, accumulates});
                begin = std::find(end, kept.end(), true);
            }
            kernels_.accumulate_sums(sums.values, document_sums, sums.factor, first, last,
                                     plan_.columns);
        });
}

} // namespace maskwise
