#include "attention/gradients_worker.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace maskwise {
namespace {

constexpr std::int64_t float_bytes = sizeof(float);

// Above this magnitude, f32 statistics (maximum + log(sum)) have too few bits for the log.
constexpr float largest_log_sum = 1 << 17;

// Views each bf16 pair as one f32 of 4 bytes.
strided_matrix as_pairs(strided_matrix matrix) {
    matrix.type = elem_type::f32;
    matrix.column_bytes = float_bytes;
    return matrix;
}

std::byte* bytes_at(const void* base) {
    return static_cast<std::byte*>(const_cast<void*>(base));
}

float from_bf16(std::uint16_t bits) {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

} // namespace

gradients_worker::gradients_worker(const gradients_plan& plan,
                                   const attention_gradients_operands& addresses,
                                   const attention_numbers& numbers, const tile_maps& maps,
                                   float* scratch)
    : gradients_(plan), plan_(*plan.attention), layout_(plan.worker), addresses_(addresses),
      numbers_(numbers), kernels_(*plan_.products),
      operands_(plan_, addresses.attention, numbers, maps, scratch),
      attention_(plan_, addresses.attention, numbers, maps, scratch) {}

float gradients_worker::run(std::int64_t head, std::int64_t row_tile, const gradient_sums& sums) {
    bind(head, row_tile);
    std::fill_n(part(layout_.query_gradients), plan_.tile_rows * plan_.depth, 0.0F);
    run_key_tiles(&sums);
    store_queries();
    if (gradients_.sinks_gradient.column_count == 0 || plan_.keys == 0) return 0;
    if (!is_loaded_) load_rows();
    return sink_gradient();
}

void gradients_worker::add_bias_gradients(std::int64_t head, std::int64_t row_tile) {
    bind(head, row_tile);
    run_key_tiles(nullptr);
}

void gradients_worker::bind(std::int64_t head, std::int64_t row_tile) {
    operands_.bind(head, row_tile);
    is_loaded_ = false;
    load_statistics(head, row_tile);
}

void gradients_worker::load_statistics(std::int64_t head, std::int64_t row_tile) {
    const auto& rows = operands_.rows();
    const strided_matrix statistics =
        operands_.matrix(plan_.statistics, addresses_.attention.statistics, rows.first);
    float* const maxima = part(layout_.maxima);
    std::fill_n(maxima, plan_.tile_rows, 0.0F);
    std::fill_n(part(layout_.log_sums), plan_.tile_rows, 0.0F);
    bool is_exact = true;
    for (std::int64_t r = 0; r < rows.rows; ++r) {
        std::memcpy(maxima + r, statistics.first + r * statistics.row_bytes, sizeof(float));
        is_exact = is_exact && !(std::abs(maxima[r]) > largest_log_sum);
    }
    if (!is_exact && !numbers_.gradients_by_operators) compute_weights_again(head, row_tile);
}

// Recomputes maxima and sums. A row whose sum is 0 keeps the statistics of the forward pass.
void gradients_worker::compute_weights_again(std::int64_t head, std::int64_t row_tile) {
    const tile_range all{head, row_tile, 0, plan_.key_tiles()};
    float* const state = attention_.worker_state();
    attention_.run(all, state);
    attention_.add_rest(all, state);
    const float* const sums = state + plan_.tile_rows;
    for (std::int64_t r = 0; r < operands_.rows().rows; ++r) {
        if (sums[r] == 0) continue;
        part(layout_.maxima)[r] = state[r];
        part(layout_.log_sums)[r] = plan_.kernels->rows.log(sums[r]);
    }
}

// Loads query, dst and dst's gradient in the layouts that the matrix-product kernels read.
void gradients_worker::load_rows() {
    operands_.for_each_panel([&](const panel_rows& panel) {
        load_dst(panel);
        load_blocks(operands_.matrix(plan_.query, addresses_.attention.query, panel.first),
                    panel.queries, plan_.depth,
                    blocks_of(panel, layout_.query_blocks, plan_.depth));
        load_blocks(operands_.matrix(gradients_.dst_gradient, addresses_.dst_gradient, panel.first),
                    panel.queries, plan_.columns,
                    blocks_of(panel, layout_.dst_blocks, plan_.columns));
    });
    is_loaded_ = true;
}

void gradients_worker::load_dst(const panel_rows& panel) {
    const strided_matrix rows =
        operands_.matrix(gradients_.dst_gradient, addresses_.dst_gradient, panel.first);
    float* const work = part(plan_.worker.work);
    float* const dst = part(layout_.dst);
    kernels_.load_panel(operands_.matrix(plan_.dst, addresses_.attention.dst, panel.first),
                        panel.queries, plan_.columns, 1, dst, work);
    float* gradient = dst_panel(panel);
    if (plan_.in_pairs) {
        kernels_.load_queries(as_pairs(rows), panel.queries, plan_.columns / 2, 1, gradient, work);
        gradient = part(layout_.dst_gradient);
    }
    kernels_.load_panel(rows, panel.queries, plan_.columns, 1, gradient, work);
    float* const deltas = part(layout_.deltas) + panel.number * plan_.panel;
    std::fill_n(deltas, plan_.panel, 0.0F);
    for (std::int64_t c = 0; c < plan_.columns; ++c, gradient += plan_.panel)
        for (std::int64_t q = 0; q < plan_.panel; ++q)
            deltas[q] += gradient[q] * dst[c * plan_.panel + q];
}

// Loads rows into blocks of `panel` columns: {block, query or pair of queries, column}.
void gradients_worker::load_blocks(const strided_matrix& rows, std::int64_t queries,
                                   std::int64_t columns, float* blocks) {
    const std::int64_t panel = plan_.panel;
    float* const dense = part(layout_.rows);
    if (!plan_.in_pairs) kernels_.load_rows(rows, queries, columns, dense);
    for (std::int64_t first = 0; first < columns; first += panel, blocks += block_floats()) {
        const std::int64_t count = std::min(panel, columns - first);
        std::fill_n(blocks, block_floats(), 0.0F);
        for (std::int64_t q = 0; q < queries; ++q) {
            if (!plan_.in_pairs) {
                std::copy_n(dense + q * columns + first, count, blocks + q * panel);
                continue;
            }
            const std::byte* const src =
                rows.first + q * rows.row_bytes + first * bytes_of(elem_type::bf16);
            auto* const dst = reinterpret_cast<std::uint32_t*>(blocks + q / 2 * panel);
            for (std::int64_t c = 0; c < count; ++c) {
                std::uint16_t element = 0;
                std::memcpy(&element, src + c * 2, sizeof element);
                dst[c] |= std::uint32_t{element} << (q % 2 * 16);
            }
        }
    }
}

// Omits tiles that the forward pass skips, and tiles whose weights are all 0.
void gradients_worker::run_key_tiles(const gradient_sums* sums) {
    const tile_range kept = operands_.kept_part({0, 0, 0, plan_.key_tiles()});
    const bool may_fill = !numbers_.fill_is_minus_infinity();
    const tile_range range = may_fill ? tile_range{0, 0, 0, plan_.key_tiles()} : kept;
    for (std::int64_t number = range.first; number < range.last; ++number) {
        const key_tile keys = operands_.tile(number);
        const bool is_doubtful =
            keys.action == tile_action::defer || keys.action == tile_action::fill;
        if (keys.action == tile_action::compute ||
            (is_doubtful && operands_.may_count(keys, part(layout_.maxima))))
            run_key_tile(keys, sums);
    }
}

void gradients_worker::run_key_tile(const key_tile& keys, const gradient_sums* sums) {
    if (!is_loaded_) load_rows();
    const strided_matrix key = operands_.keys_of(keys);
    const strided_matrix value =
        plan_.in_pairs
            ? as_pairs(operands_.matrix(plan_.value, addresses_.attention.value, keys.first))
            : operands_.floats_of_values(keys);
    if (plan_.in_pairs && sums != nullptr)
        key_pairs_ =
            kernels_.load_pairs(operands_.matrix(plan_.key, addresses_.attention.key, keys.first),
                                keys.keys, plan_.depth, false, part(layout_.key_pairs));
    operands_.for_each_panel([&](const panel_rows& panel) {
        panel_tile tile{panel, keys, sums != nullptr, {}, {}};
        tile.scores = operands_.multiply(panel, keys, key, part(plan_.worker.scores));
        if (tile.scores.keys == 0) return;
        tile.scores.in_pairs = plan_.in_pairs && tile.is_summed;
        const bool is_finite = compute_gradients(tile, value);
        if (sums == nullptr)
            add_bias(tile);
        else if (is_finite)
            add_products(tile, key, *sums);
        else
            add_unmasked(tile, *sums);
    });
}

bool gradients_worker::compute_gradients(panel_tile& tile, const strided_matrix& value) {
    const panel_rows& panel = tile.panel;
    const panel_scores& scores = tile.scores;
    const std::int64_t first = panel.number * plan_.panel;
    tile.gradients = {
        .products = part(layout_.products),
        .maxima = part(layout_.maxima) + first,
        .log_sums = part(layout_.log_sums) + first,
        .deltas = part(layout_.deltas) + first,
        .of_bias = !tile.is_summed,
        .of_fill = numbers_.gradients_by_operators ? !numbers_.fill_is_minus_infinity()
                                                   : !tile.is_summed && plan_.desc.bias_on_fill,
        .rounds_to = numbers_.gradients_by_operators ? plan_.query.type : elem_type::f32,
        .weight_rows = reinterpret_cast<std::uint16_t*>(part(layout_.weight_rows)),
        .gradient_rows = reinterpret_cast<std::uint16_t*>(part(layout_.gradient_rows))};
    const auto multiply = plan_.in_pairs ? kernels_.multiply_key_pairs : kernels_.multiply_keys;
    multiply({.a = value.first + scores.first_key * value.row_bytes,
              .row_bytes = value.row_bytes,
              .step_bytes = value.column_bytes,
              .rows = scores.keys,
              .steps = plan_.in_pairs ? plan_.columns / 2 : plan_.columns,
              .b = dst_panel(panel),
              .c = tile.gradients.products,
              .queries = panel.queries});
    return kernels_.score_gradients(scores, tile.gradients);
}

void gradients_worker::add_products(const panel_tile& tile, const strided_matrix& key,
                                    const gradient_sums& sums) {
    const bool pairs = plan_.in_pairs;
    const void* const weights =
        pairs ? static_cast<const void*>(tile.gradients.weight_rows) : tile.scores.scores;
    const void* const gradients =
        pairs ? static_cast<const void*>(tile.gradients.gradient_rows) : tile.gradients.products;
    add_rows(tile, weights, blocks_of(tile.panel, layout_.dst_blocks, plan_.columns), plan_.columns,
             sums.values);
    add_rows(tile, gradients, blocks_of(tile.panel, layout_.query_blocks, plan_.depth), plan_.depth,
             sums.keys);
    add_query_gradients(tile, key);
}

// sums[key][column] += sum over queries of a[key][query] * blocks[query][column].
void gradients_worker::add_rows(const panel_tile& tile, const void* a, const float* blocks,
                                std::int64_t columns, float* sums) const {
    const std::int64_t elem_bytes = plan_.in_pairs ? bytes_of(elem_type::bf16) : float_bytes;
    const auto multiply = plan_.in_pairs ? kernels_.multiply_key_pairs : kernels_.multiply_keys;
    float* c = sums + tile.keys.number * gradients_.tile_floats(columns) +
               tile.scores.first_key * plan_.panel;
    for (std::int64_t first = 0; first < columns; first += plan_.panel) {
        multiply({.a = bytes_at(a),
                  .row_bytes = plan_.panel * elem_bytes,
                  .step_bytes = float_bytes,
                  .rows = tile.scores.keys,
                  .steps = query_steps(tile.panel.queries),
                  .b = blocks,
                  .c = c,
                  .queries = std::min(plan_.panel, columns - first),
                  .accumulates = true});
        blocks += block_floats();
        c += plan_.tile_keys * plan_.panel;
    }
}

void gradients_worker::add_query_gradients(const panel_tile& tile, const strided_matrix& key) {
    const std::int64_t step = plan_.in_pairs ? 2 : 1;
    const strided_matrix& rows = plan_.in_pairs ? key_pairs_ : key;
    const auto multiply = plan_.in_pairs ? kernels_.multiply_value_pairs : kernels_.multiply_values;
    multiply({.a = rows.first + tile.scores.first_key / step * rows.row_bytes,
              .row_bytes = rows.column_bytes,
              .step_bytes = rows.row_bytes,
              .rows = plan_.depth,
              .steps = (tile.scores.keys + step - 1) / step,
              .b = tile.gradients.products,
              .c = query_gradients(tile.panel),
              .queries = tile.panel.queries,
              .accumulates = true});
}

// Adds only products with a nonzero weight or gradient, because 0 * NaN is NaN.
void gradients_worker::add_unmasked(const panel_tile& tile, const gradient_sums& sums) {
    const panel_scores& scores = tile.scores;
    const std::int64_t depth = plan_.depth, columns = plan_.columns, panel = plan_.panel;
    float* const key = part(layout_.rows);
    float* const row = key + std::max(depth, columns);
    const auto add = [&](float factor, std::int64_t k, std::int64_t count, float* gradient) {
        gradient += tile.keys.number * gradients_.tile_floats(count) + k * panel;
        for (std::int64_t c = 0; c < count; ++c)
            gradient[c / panel * plan_.tile_keys * panel + c % panel] += factor * row[c];
    };
    for (std::int64_t i = 0; i < scores.keys * panel; ++i) {
        const std::int64_t k = scores.first_key + i / panel, q = i % panel;
        if (q >= tile.panel.queries) continue;
        const float weight =
            scores.in_pairs ? from_bf16(tile.gradients.weight_rows[i]) : scores.scores[i];
        const float gradient = scores.in_pairs ? from_bf16(tile.gradients.gradient_rows[i])
                                               : tile.gradients.products[i];
        const std::int64_t r = tile.panel.first + q;
        if (weight != 0) {
            kernels_.load_rows(
                operands_.matrix(gradients_.dst_gradient, addresses_.dst_gradient, r), 1, columns,
                row);
            add(weight, k, columns, sums.values);
        }
        if (gradient == 0) continue;
        kernels_.load_rows(operands_.matrix(plan_.query, addresses_.attention.query, r), 1, depth,
                           row);
        add(gradient, k, depth, sums.keys);
        kernels_.load_rows(
            operands_.matrix(plan_.key, addresses_.attention.key, tile.keys.first + k), 1, depth,
            key);
        for (std::int64_t c = 0; c < depth; ++c)
            query_gradients(tile.panel)[c * panel + q] += gradient * key[c];
    }
}

void gradients_worker::add_bias(const panel_tile& tile) {
    const strided_matrix rows =
        operands_.matrix(gradients_.bias_gradient, addresses_.bias_gradient, tile.panel.first);
    const std::int64_t first = tile.keys.first + tile.scores.first_key;
    for (std::int64_t k = 0; k < tile.scores.keys; ++k)
        for (std::int64_t q = 0; q < tile.panel.queries; ++q) {
            std::byte* const element =
                rows.first + q * rows.row_bytes + (first + k) * rows.column_bytes;
            float sum = 0;
            std::memcpy(&sum, element, sizeof sum);
            sum += tile.gradients.products[k * plan_.panel + q];
            std::memcpy(element, &sum, sizeof sum);
        }
}

void gradients_worker::store_queries() {
    float* const factors = part(plan_.worker.factor);
    std::fill_n(factors, plan_.panel, numbers_.scale);
    operands_.for_each_panel([&](const panel_rows& panel) {
        kernels_.store_panel(
            query_gradients(panel), factors, panel.queries, plan_.depth,
            operands_.matrix(gradients_.query_gradient, addresses_.query_gradient, panel.first),
            part(plan_.worker.work));
    });
}

void gradients_worker::store_keys(std::int64_t head, std::int64_t key_tile,
                                  const gradient_sums& sums) {
    const shape_position position(head, plan_.outer);
    const auto store = [&](const head_operand& operand, void* base, std::int64_t columns,
                           float factor, const float* src) {
        const std::int64_t first = key_tile * plan_.tile_keys;
        const std::int64_t keys = std::min(plan_.tile_keys, plan_.keys - first);
        float* const rows = part(layout_.rows);
        src += key_tile * gradients_.tile_floats(columns);
        for (std::int64_t c = 0; c < columns;
             c += plan_.panel, src += plan_.tile_keys * plan_.panel)
            for (std::int64_t k = 0; k < keys; ++k)
                for (std::int64_t i = 0; i < std::min(plan_.panel, columns - c); ++i)
                    rows[k * columns + c + i] = factor * src[k * plan_.panel + i];
        std::byte* const dst =
            bytes_at(base) + offset_bytes(operand, position) + first * operand.row_bytes;
        kernels_.store_rows(rows, keys, columns,
                            {dst, operand.type, operand.row_bytes, operand.column_bytes});
    };
    store(gradients_.key_gradient, addresses_.key_gradient, plan_.depth, numbers_.scale, sums.keys);
    store(gradients_.value_gradient, addresses_.value_gradient, plan_.columns, 1, sums.values);
}

float gradients_worker::sink_gradient() {
    const auto& rows = operands_.rows();
    float* const weights = part(layout_.rows);
    for (std::int64_t r = 0; r < rows.rows; ++r)
        weights[r] =
            operands_.sink(rows.first + r) - part(layout_.maxima)[r] - part(layout_.log_sums)[r];
    plan_.kernels->rows.exp_sum(weights, 0, rows.rows, nullptr);
    float sum = 0;
    for (std::int64_t r = 0; r < rows.rows; ++r) sum -= weights[r] * part(layout_.deltas)[r];
    return sum;
}

} // namespace maskwise
