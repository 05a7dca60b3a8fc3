#include "attention/tile_operands.hpp"

#include "attention/attention_checks.hpp"
#include "attention/cache_pages.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

namespace maskwise {
namespace {

constexpr std::int64_t float_bytes = sizeof(float);

std::byte* bytes_at(const void* base) {
    return static_cast<std::byte*>(const_cast<void*>(base));
}

strided_matrix transposed(strided_matrix matrix) {
    std::swap(matrix.row_bytes, matrix.column_bytes);
    return matrix;
}

// Views each bf16 pair as one f32 of 4 bytes.
strided_matrix as_pairs(strided_matrix matrix) {
    matrix.type = elem_type::f32;
    matrix.column_bytes = float_bytes;
    return matrix;
}

// Copies elements of `width` bytes at a stride of `stride_bytes` into a dense row of `bytes` bytes.
void copy_elements(const std::byte* src, std::int64_t stride_bytes, std::byte* dst,
                   std::int64_t bytes, std::int64_t width) {
    const std::int64_t run_bytes = stride_bytes == width ? bytes : width;
    for (std::int64_t offset = 0; offset < bytes; offset += run_bytes, src += stride_bytes)
        std::copy_n(src, run_bytes, dst + offset);
}

void prefetch(const std::byte* first, std::int64_t bytes) {
    constexpr std::int64_t line_bytes = scratch_alignment;
    for (std::int64_t b = 0; b < bytes; b += line_bytes) __builtin_prefetch(first + b);
}

// Returns the maps of one row tile.
tile_maps part_of(tile_maps maps, const tile_plan& plan, std::int64_t head,
                  std::span<const std::int64_t> position, std::int64_t number) {
    if (maps.cond != nullptr) maps.cond += place_in_map(plan.mask, position, number);
    if (maps.bias != nullptr) {
        const std::int64_t place = place_in_map(plan.bias_mask, position, number);
        maps.bias += place;
        maps.highest_bias += place;
    }
    if (maps.key_norms != nullptr) maps.key_norms += head * plan.key_tiles();
    return maps;
}

// Whether queries may be scaled instead of scores. A larger scale may make queries infinite; a
// smaller scale loses bits of small queries. False for NaN.
bool is_moderate(float scale) {
    return std::abs(scale) <= 1 && std::abs(scale) >= 0x1p-40F;
}

} // namespace

// Scales the queries instead of the scores if the scale is moderate and scores are not retained.
// bf16 pairs are never scaled.
tile_operands::tile_operands(const tile_plan& plan, const attention_operands& addresses,
                             const attention_numbers& numbers, const tile_maps& maps,
                             float* scratch)
    : plan_(plan), addresses_(addresses), numbers_(numbers), maps_(maps), kernels_(*plan.products),
      scratch_(scratch), query_factor_(1), spans_(plan, addresses.rules, scratch) {
    for (const tile_copies& copies : {plan.worker.key_copies, plan.worker.value_copies})
        std::fill_n(records_of(copies), copies.slots, tile_copy{});
    if (plan.retains_scores() || !is_moderate(numbers.scale)) {
        steps_ = numbers.steps;
        return;
    }
    query_factor_ = plan.in_pairs ? 1 : numbers.scale;
    steps_ = steps_of(plan.in_pairs ? numbers.scale : 1, numbers.soft_cap);
}

void tile_operands::bind(std::int64_t head, std::int64_t number) {
    position_ = shape_position(head, plan_.outer);
    length_ = plan_.keys;
    if (plan_.key.page_keys != 0) length_ = length_of(addresses_.rules, position_[0], plan_.keys);
    const std::int64_t first = number * plan_.tile_rows;
    const std::int64_t count = std::min(plan_.tile_rows, plan_.rows - first);
    spans_.find({first, count}, position_);
    rows_ = {first, count, part_of(maps_, plan_, head, position_, number),
             spans_.masks() ? &spans_ : nullptr};
    has_queries_ = false;
    query_norm_ = unknown_norm;
    if (has_slopes(addresses_.rules)) return load_slopes(head); // the best bias is 0
    if (rows_.maps.key_norms == nullptr) return;
    rows_.best_bias = -std::numeric_limits<float>::infinity();
    for (std::int64_t t = 0; t < plan_.key_tiles(); ++t) // std::max skips NaN
        rows_.best_bias = std::max(rows_.best_bias, rows_.maps.highest_bias[t]);
}

void tile_operands::load_slopes(std::int64_t head) {
    const std::int64_t heads = heads_of(plan_.desc.dst);
    const std::int64_t heads_of_sequence =
        plan_.heads * plan_.folded_heads / sequences_of(plan_.desc);
    float* const slopes = part(plan_.worker.slopes);
    std::fill_n(slopes, plan_.tile_rows, 0.0F);
    rows_.has_slopes = true;
    rows_.first_position = rows_.last_position = spans_.position(0);
    for (std::int64_t r = 0; r < rows_.rows; ++r) {
        const std::int64_t of_row =
            head * plan_.folded_heads + (rows_.first + r) / plan_.query_rows;
        slopes[r] = slope_of(*addresses_.rules, of_row / heads_of_sequence, heads, of_row % heads);
        rows_.first_position = std::min(rows_.first_position, spans_.position(r));
        rows_.last_position = std::max(rows_.last_position, spans_.position(r));
    }
    rows_.least_slope = *std::min_element(slopes, slopes + rows_.rows);
}

tile_range tile_operands::kept_part(const tile_range& range) const {
    tile_range all = range;
    if (rows_.spans != nullptr) {
        const key_span hull = spans_.hull();
        all.first = std::max(range.first, hull.first / plan_.tile_keys);
        all.last = std::min(range.last, (hull.last + plan_.tile_keys - 1) / plan_.tile_keys);
    }
    if (range.parts == 1) return all;
    tile_range part = all;
    part.first = first_of(all, range.part);
    part.last = first_of(all, range.part + 1);
    return part;
}

std::int64_t tile_operands::count_computed(const tile_range& range) const {
    const bool is_masked = rows_.spans != nullptr || rows_.maps.cond != nullptr ||
                           rows_.maps.bias != nullptr || rows_.has_slopes;
    if (!is_masked) return range.last - range.first;
    std::int64_t count = 0;
    for (std::int64_t number = range.first; number < range.last; ++number)
        count += tile(number).action == tile_action::compute ? 1 : 0;
    return count;
}

std::int64_t tile_operands::first_of(const tile_range& all, std::int64_t part) const {
    if (part == all.parts) return all.last;
    std::int64_t before = count_computed(all) * part / all.parts, number = all.first;
    for (; before > 0; ++number) before -= tile(number).action == tile_action::compute ? 1 : 0;
    return number;
}

// The first worker that needs a norm computes the norm. Other workers may concurrently do the same.
float tile_operands::key_norm(const key_tile& keys) const {
    const std::atomic_ref<float> known(rows_.maps.key_norms[keys.number]);
    float norm = known.load(std::memory_order_relaxed);
    if (norm != unknown_norm) return norm;
    const strided_matrix rows = matrix(plan_.key, addresses_.key, keys.first);
    norm = kernels_.largest_norm(
        whole_tile(plan_.key, addresses_.key, keys, rows, part(plan_.worker.gathered)), keys.keys,
        plan_.depth);
    known.store(norm, std::memory_order_relaxed);
    return norm;
}

// Adds 1 % to the exact bound for the products' rounding errors. Does not read a tile's keys if the
// bias masks the tile.
float tile_operands::bound_of_scores(const key_tile& keys) {
    if (keys.action != tile_action::defer || rows_.maps.key_norms == nullptr ||
        (rows_.maps.bias != nullptr && rows_.maps.bias[keys.number] == tile_mask::masked))
        return std::numeric_limits<float>::infinity();
    if (query_norm_ == unknown_norm)
        query_norm_ = kernels_.largest_norm(matrix(plan_.query, addresses_.query, rows_.first),
                                            rows_.rows, plan_.depth);
    const float cap = std::abs(numbers_.soft_cap);
    const float bound = 1.01F * query_norm_ * key_norm(keys) * std::abs(numbers_.scale);
    return cap != 0 && bound > cap ? cap : bound;
}

strided_matrix tile_operands::matrix(const head_operand& operand, const void* base,
                                     std::int64_t row) const {
    std::int64_t bytes = offset_bytes(operand, position_);
    if (operand.page_keys != 0) {
        bytes += operand.page_bytes * page_number(plan_.desc.page_table, addresses_.page_table,
                                                  position_[0], row / operand.page_keys);
        row %= operand.page_keys;
    }
    return {bytes_at(base) + bytes + row * operand.row_bytes, operand.type, operand.row_bytes,
            operand.column_bytes};
}

strided_matrix tile_operands::whole_tile(const head_operand& operand, const void* base,
                                         const key_tile& keys, const strided_matrix& rows,
                                         float* dst) const {
    if (!plan_.gathers) return rows;
    const std::int64_t width = bytes_of(operand.type), row_bytes = operand.column_count * width;
    const std::int64_t last = std::min(length_, keys.first + keys.keys);
    std::byte* next = bytes_at(dst);
    for (std::int64_t key = keys.first; key < last;) {
        const std::int64_t later = key + plan_.tile_keys;
        const std::int64_t end = std::min(last, key + operand.page_keys - key % operand.page_keys);
        strided_matrix run = matrix(operand, base, key);
        const std::byte* ahead = later < length_ ? matrix(operand, base, later).first : run.first;
        for (; key < end; ++key, next += row_bytes) {
            prefetch(ahead, row_bytes);
            copy_elements(run.first, run.column_bytes, next, row_bytes, width);
            run.first += run.row_bytes;
            ahead += run.row_bytes;
        }
    }
    std::fill(next, bytes_at(dst) + keys.keys * row_bytes, std::byte{});
    return {bytes_at(dst), operand.type, row_bytes, width};
}

strided_matrix tile_operands::floats(const strided_matrix& rows, std::int64_t count,
                                     std::int64_t columns, float* dst) const {
    kernels_.load_rows(rows, count, columns, dst);
    return {bytes_at(dst), elem_type::f32, columns * float_bytes, float_bytes};
}

// Returns the keys as rows, or as pairs of bf16.
strided_matrix tile_operands::keys_of(const key_tile& keys) {
    ++computed_tiles_;
    if (!has_queries_) load_queries();
    const strided_matrix rows = matrix(plan_.key, addresses_.key, keys.first);
    if (!plan_.copies_key()) return plan_.in_pairs ? as_pairs(rows) : rows;
    return kept_copy(plan_.worker.key_copies, keys, rows, [&](float* dst) {
        const bool repacks = plan_.repacks_key();
        const strided_matrix tile = whole_tile(plan_.key, addresses_.key, keys, rows,
                                               repacks ? part(plan_.worker.gathered) : dst);
        if (!repacks) return plan_.in_pairs ? as_pairs(tile) : tile;
        if (!plan_.key_is_transposed) return floats(tile, keys.keys, plan_.depth, dst);
        const strided_matrix turned = transposed(tile);
        return transposed(plan_.in_pairs
                              ? kernels_.load_pairs(turned, plan_.depth, keys.keys, false, dst)
                              : floats(turned, plan_.depth, keys.keys, dst));
    });
}

void tile_operands::load_queries() {
    const auto load = plan_.multiplies_by_tiles() ? kernels_.load_panel : kernels_.load_queries;
    for_each_panel([&](const panel_rows& panel) {
        const strided_matrix queries = matrix(plan_.query, addresses_.query, panel.first);
        load(plan_.in_pairs ? as_pairs(queries) : queries, panel.queries, plan_.depth_steps(),
             query_factor_, queries_of(panel), part(plan_.worker.work));
    });
    has_queries_ = true;
}

key_span tile_operands::kept_keys(const panel_rows& panel, const key_tile& keys) const {
    if (!leaves_keys_out(keys)) return {0, keys.keys};
    const key_span hull = spans_.hull(panel.number);
    const auto in_tile = [&](std::int64_t key) {
        return std::clamp<std::int64_t>(key - keys.first, 0, keys.keys);
    };
    return {in_tile(hull.first), hull.is_empty() ? 0 : in_tile(hull.last)};
}

panel_scores tile_operands::multiply(const panel_rows& panel, const key_tile& keys,
                                     const strided_matrix& key, float* scores) {
    panel_scores tile_scores = scores_of(panel, keys, scores);
    if (tile_scores.keys == 0) return tile_scores;
    const auto multiply = plan_.in_pairs ? kernels_.multiply_key_pairs : kernels_.multiply_keys;
    multiply({.a = key.first + tile_scores.first_key * key.row_bytes,
              .row_bytes = key.row_bytes,
              .step_bytes = key.column_bytes,
              .rows = tile_scores.keys,
              .steps = plan_.depth_steps(),
              .b = queries_of(panel),
              .c = scores,
              .queries = panel.queries,
              .type = key.type,
              .ahead_bytes = ahead_bytes_of(keys, key)});
    tile_scores.steps = steps_;
    tile_scores.fill = numbers_.fill;
    tile_scores.bias_on_fill = plan_.desc.bias_on_fill;
    if (keys.needs_bias) add_bias(panel, tile_scores, keys.first + tile_scores.first_key);
    if (keys.needs_cond) add_cond(panel, tile_scores, keys.first + tile_scores.first_key);
    if (keys.needs_spans)
        spans_.write_spans(tile_scores, panel.number, keys.first + tile_scores.first_key);
    return tile_scores;
}

panel_scores tile_operands::scores_of(const panel_rows& panel, const key_tile& keys,
                                      float* scores) const {
    panel_scores tile_scores;
    tile_scores.scores = scores;
    const key_span kept = kept_keys(panel, keys);
    const std::int64_t step = plan_.key_alignment();
    tile_scores.first_key = kept.first / step * step;
    tile_scores.keys = kept.is_empty() ? 0 : kept.last - tile_scores.first_key;
    tile_scores.queries = panel.queries;
    tile_scores.in_pairs = plan_.weights_in_pairs;
    return tile_scores;
}

float tile_operands::sink(std::int64_t row) const {
    const auto sink = matrix(plan_.sinks, addresses_.sinks, row / plan_.query_rows);
    float numbers[row_block_elems];
    kernels_.load_rows(sink, 1, 1, numbers);
    return numbers[0];
}

strided_matrix tile_operands::mask_of(const head_operand& mask, const void* base,
                                      const panel_rows& panel, const key_span& keys) const {
    strided_matrix rows = matrix(mask, base, 0);
    rows.first += keys.first * rows.column_bytes;
    const auto row_at = [&](std::int64_t q) {
        return rows.first + mask.shared_row(panel.first + q) * rows.row_bytes;
    };
    const bool follow =
        mask.shared_rows == 0 || mask.shared_row(panel.first) + panel.queries <= mask.shared_rows;
    if (follow) return {row_at(0), mask.type, rows.row_bytes, rows.column_bytes};
    const std::int64_t width = bytes_of(mask.type), row_bytes = (keys.last - keys.first) * width;
    std::byte* const copy = bytes_at(part(plan_.worker.mask));
    for (std::int64_t q = 0; q < panel.queries; ++q)
        copy_elements(row_at(q), rows.column_bytes, copy + q * row_bytes, row_bytes, width);
    return {copy, mask.type, row_bytes, width};
}

void tile_operands::add_cond(const panel_rows& panel, panel_scores& scores,
                             std::int64_t first_key) const {
    const strided_matrix conds =
        mask_of(plan_.cond, addresses_.cond, panel, {first_key, first_key + scores.keys});
    std::byte* const dst = bytes_at(part(plan_.worker.conds));
    scores.cond = dst;
    scores.cond_step = plan_.panel;
    if (conds.row_bytes == 0) {
        scores.cond_step = 1;
        for (std::int64_t i = 0; i < scores.keys; ++i) dst[i] = conds.first[i * conds.column_bytes];
    } else {
        kernels_.load_conds(conds, panel.queries, scores.keys, dst);
    }
    if (plan_.desc.cond_masks)
        std::transform(dst, dst + scores.keys * scores.cond_step, dst,
                       [](std::byte b) { return std::byte{b == std::byte{0}}; });
}

void tile_operands::add_bias(const panel_rows& panel, panel_scores& scores,
                             std::int64_t first_key) const {
    if (rows_.has_slopes) return add_slopes(panel, scores, first_key);
    const strided_matrix bias =
        mask_of(plan_.bias, addresses_.bias, panel, {first_key, first_key + scores.keys});
    float* const dst = part(plan_.worker.bias);
    scores.bias = dst;
    scores.bias_step = bias.row_bytes == 0 ? 1 : plan_.panel;
    if (bias.row_bytes == 0)
        kernels_.load_rows(bias, 1, scores.keys, dst);
    else
        kernels_.load_panel(bias, panel.queries, scores.keys, 1, dst, part(plan_.worker.work));
}

void tile_operands::add_slopes(const panel_rows& panel, panel_scores& scores,
                               std::int64_t first_key) const {
    const std::int64_t row = panel.first - rows_.first;
    float* const positions = part(plan_.worker.work);
    std::fill_n(positions, plan_.panel, 0.0F);
    for (std::int64_t q = 0; q < panel.queries; ++q)
        positions[q] = static_cast<float>(spans_.position(row + q) - first_key);
    float* const dst = part(plan_.worker.bias);
    kernels_.write_slopes(positions, part(plan_.worker.slopes) + row, scores.keys, dst);
    scores.bias = dst;
    scores.bias_step = plan_.panel;
}

} // namespace maskwise
