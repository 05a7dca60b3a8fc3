// Values, and their products with weights.

#include "attention/tile_operands.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace maskwise {

strided_matrix tile_operands::floats_of_values(const key_tile& keys) const {
    const strided_matrix own = matrix(plan_.value, at_.value, keys.first);
    if (plan_.has_float_values()) return own;
    return floats(own, keys.keys, plan_.columns, plan_.worker.values);
}

strided_matrix tile_operands::values_of(const key_tile& keys) const {
    if (plan_.converts_value && !plan_.weights_in_pairs) return floats_of_values(keys);
    const strided_matrix own = matrix(plan_.value, at_.value, keys.first);
    if (!plan_.weights_in_pairs) return own;
    return kernels_.load_pairs(own, keys.keys, plan_.columns, ahead_bytes_of(own) != 0,
                               part(plan_.worker.pairs));
}

// The weight of a key that is left out is 0, but its value may be NaN: it is not multiplied, nor
// what else its pair holds.
void tile_operands::add_run(const key_tile& keys, const panel_scores& weights,
                            const strided_matrix& value, const key_span& run,
                            const value_sums& to) const {
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
              .c = to.values,
              .factor = to.factor,
              .queries = weights.queries,
              .accumulates = to.accumulates,
              .type = value.type,
              .ahead_bytes = ahead_bytes_of(value)});
    if (cuts_first) write_half(keys, run.first - 1, value, true);
    if (cuts_last) write_half(keys, run.last, value, true);
}

void tile_operands::write_half(const key_tile& keys, std::int64_t key, const strided_matrix& pairs,
                               bool is_kept) const {
    constexpr std::int64_t half_bytes = sizeof(std::uint16_t);
    const std::uint16_t zero = 0;
    const std::byte* const from = matrix(plan_.value, at_.value, keys.first + key).first;
    std::byte* const to = pairs.first + key / 2 * pairs.row_bytes + key % 2 * half_bytes;
    for (std::int64_t c = 0; c < plan_.columns; ++c)
        std::memcpy(to + c * pairs.column_bytes,
                    is_kept ? static_cast<const void*>(from + c * half_bytes) : &zero, half_bytes);
}

void tile_operands::add_values(const panel_rows& panel, const key_tile& keys,
                               const panel_scores& weights, const strided_matrix& value,
                               const value_sums& to) const {
    if (!leaves_keys_out(keys) || spans_.is_whole(panel.number))
        add_run(keys, weights, value, kept_keys(panel, keys), to);
    else
        add_documents(panel, keys, weights, value, to);
}

// The product is one of all queries, of which the others do not take part in the sum. Sums are
// those of all keys of the tile, to the bit: the factor comes after the last of several runs.
void tile_operands::add_documents(const panel_rows& panel, const key_tile& keys,
                                  const panel_scores& weights, const strided_matrix& value,
                                  const value_sums& to) const {
    float* const sums = part(plan_.worker.work);
    const query_rows queries{panel.first - rows_.first, panel.queries};
    spans_.for_each_document(
        queries, keys.first, keys.keys,
        [&](std::int64_t first, std::int64_t last, std::uint64_t kept) {
            if (kept == 0) return;
            if (to.accumulates) std::copy_n(to.values, plan_.panel * plan_.columns, sums);
            panel_scores own = weights;
            own.queries = last;
            for (bool accumulates = to.accumulates; kept != 0; accumulates = true) {
                const std::int64_t from = std::countr_zero(kept);
                const std::int64_t end = from + std::countr_one(kept >> from);
                add_run(keys, own, value, {from, end}, {sums, nullptr, accumulates});
                kept = end == 64 ? 0 : kept >> end << end;
            }
            kernels_.accumulate_sums(to.values, sums, to.factor, first, last, plan_.columns);
        });
}

} // namespace maskwise
