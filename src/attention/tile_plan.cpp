#include "attention/tile_plan.hpp"

#include "attention/attention_checks.hpp"
#include "attention/row_spans.hpp"
#include "base/checked.hpp"
#include "tensor/broadcast.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <array>

namespace maskwise {
namespace {

// Keys of a tile, except of wide tiles (keys_of_tile).
constexpr std::int64_t usual_tile_keys = 64;
static_assert(usual_tile_keys <= most_tile_keys);
// A worker's copies of a head's keys or values should fit L2.
constexpr std::int64_t most_copied_floats = 1 << 18; // mutate.py: skip
// Retained scores should fit L2.
constexpr std::int64_t most_retained_scores = 1 << 16;

// No machine holds a tile of longer rows. Keeps a worker's scratch below 2^59 bytes.
constexpr std::int64_t most_row_elems = std::int64_t{1} << 48;
// Keeps counts of heads, rows, keys and tiles, and their sums, within int64.
constexpr std::int64_t most_products = std::int64_t{1} << 60;

// An extent of 0 counts as 1, because products of only some extents must fit, too.
void require_countable(const tile_plan& plan) {
    std::optional<std::int64_t> products = 1;
    const auto times = [&](std::int64_t extent) {
        if (products) products = checked_multiply(*products, std::max<std::int64_t>(extent, 1));
    };
    const std::int64_t kept = plan.retains_scores() ? plan.keys : 0;
    const bool has_short_rows = std::max({plan.depth, plan.columns, kept}) <= most_row_elems;
    for (const std::int64_t extent : plan.outer) times(extent);
    times(plan.rows);
    times(plan.keys);
    if (has_short_rows) times(plan.depth + plan.columns);
    if (has_short_rows && products && *products <= most_products) return;
    throw shape_error("attention: " + to_string(plan.outer) + " x " + std::to_string(plan.rows) +
                      " queries x " + std::to_string(plan.keys) + " keys, depth " +
                      std::to_string(plan.depth) + ", columns " + std::to_string(plan.columns) +
                      " is too large, expected rows of at most 2^48 elements and 2^60 products");
}

bool is_dense_bf16(const head_operand& operand) {
    return operand.type == elem_type::bf16 && operand.column_bytes == bytes_of(elem_type::bf16);
}

// Whether products can use bf16 pairs. Dense queries and keys are read in place. Values and
// transposed keys are packed into pairs tile by tile. Kernels of narrow panels have no value pairs,
// so their weights stay f32.
bool can_take_pairs(const tile_plan& plan) {
    const attention_kernels& products = *plan.products;
    const bool is_beyond_isa =
        plan.kernels->base == isa::avx512 && products.begin_products == nullptr;
    const bool has_kernel = products.multiply_key_pairs != nullptr &&
                            (!is_beyond_isa || gains_by_bf16_products(native_cpu()));
    if (!has_kernel || plan.depth % 2 != 0 || !is_dense_bf16(plan.query)) return false;
    if (products.multiply_value_pairs == nullptr) return is_dense_bf16(plan.key);
    if (plan.retains_scores() && plan.weights_type != elem_type::bf16) return false;
    return is_dense_bf16(plan.value) &&
           (is_dense_bf16(plan.key) ||
            (plan.key_is_transposed && plan.key.type == elem_type::bf16));
}

void bind_operands(tile_plan& plan) {
    const attention_desc& desc = plan.desc;
    const dims& outer = plan.outer;
    plan.query = bind_operand(desc.query, outer, plan.rows, plan.depth);
    plan.key = bind_operand(desc.key, outer, plan.keys, plan.depth);
    plan.value = bind_operand(desc.value, outer, plan.keys, plan.columns);
    plan.cond = bind_operand(desc.cond, outer, plan.rows, plan.keys);
    plan.cond.type = elem_type::u8; // booleans are read as bytes
    plan.bias = bind_operand(desc.bias, outer, plan.rows, plan.keys);
    plan.dst = bind_operand(desc.dst, outer, plan.rows, plan.columns);
    plan.statistics = bind_operand_without(1, desc.statistics, outer, plan.rows);
    plan.sinks = bind_operand_without(2, desc.sinks, outer, plan.rows);
    if (desc.grouped_queries && plan.heads > 0) {
        plan.key.shared_by = outer[outer.rank() - 1] / heads_of(desc.key);
        plan.value.shared_by = outer[outer.rank() - 1] / heads_of(desc.value);
    }
    plan.key_is_transposed = plan.key.row_bytes == bytes_of(plan.key.type) &&
                             plan.key.column_bytes != plan.key.row_bytes;
}

// `cache` describes the pages; plan.desc describes whole sequences.
void bind_pages(tile_plan& plan, const attention_desc& cache) {
    plan.cache_pages = cache.key.extents[0];
    plan.key.page_bytes = plan.desc.key.strides_bytes[0];
    plan.value.page_bytes = plan.desc.value.strides_bytes[0];
    for (head_operand* operand : {&plan.key, &plan.value}) {
        operand->page_keys = cache.key.extents[2];
        operand->outer_bytes[0] = 0;
    }
    plan.gathers = plan.key.page_keys % usual_tile_keys != 0;
    plan.key_is_transposed = plan.key_is_transposed && !plan.gathers;
}

// Whether the product kernels can read the operand in place, with elements `step_bytes` apart.
bool is_taken(const tile_plan& plan, const head_operand& operand, std::int64_t step_bytes) {
    return step_bytes == bytes_of(operand.type) &&
           (operand.type == elem_type::f32 || plan.products->takes_any_type);
}

// Whether narrow panels are faster than one partly filled wide panel: up to 3/8 of a wide panel's
// queries. If wide panels multiply by AMX, only up to 4 queries. For f32 on AVX-512, up to 5/8 if
// the queries need a second vector or if a head's keys and values do not fit L2.
bool takes_few(const tile_plan& plan) {
    constexpr std::int64_t many_bytes = 1 << 20; // mutate.py: skip
    const kernel_table& table = *plan.kernels;
    if (table.attention_panel_of_4.panel == nullptr) return false;
    if (plan.multiplies_by_tiles()) return plan.rows <= 4; // mutate.py: skip
    const std::int64_t panel = table.attention.panel();
    if (plan.rows <= panel * 3 / 8) return true; // mutate.py: skip
    const bool is_wide_f32 = table.base == isa::avx512 && plan.query.type == elem_type::f32;
    if (!is_wide_f32 || plan.rows > panel * 5 / 8) return false; // mutate.py: skip
    return plan.rows > panel / 2 ||
           plan.keys * (plan.depth + plan.columns) * bytes_of(elem_type::f32) >= many_bytes;
}

// Whether rows of other heads separate a head's f32 rows. The rows then map to few cache sets and
// leave the cache before the next row tile reads them. A copy stays in the cache. With fewer than
// many_rows queries, copies cost more than they save.
bool is_scattered(const tile_plan& plan, const head_operand& operand) {
    constexpr std::int64_t many_rows = 8 * most_tile_rows; // mutate.py: skip
    return !plan.gathers && operand.type == elem_type::f32 && plan.rows >= many_rows &&
           plan.keys > 0 && operand.row_bytes > operand.column_count * bytes_of(elem_type::f32) &&
           operand.column_count <= most_copied_floats / plan.keys;
}

// Order `fixed` excludes narrow panels, because they sum a score over several vector lanes. It also
// excludes pairs, because a key's index would decide which keys form a pair.
plan_limits limits_of(const attention_desc& desc, plan_limits limits) {
    if (desc.order == attention_order::fixed) limits.has_narrow_panels = limits.has_pairs = false;
    return limits;
}

void choose_products(tile_plan& plan, const plan_limits& limits) {
    const kernel_table& table = *plan.kernels;
    const auto choose = [&](const attention_kernels& products) {
        plan.products = &products;
        plan.in_pairs = limits.has_pairs && can_take_pairs(plan);
    };
    choose(table.attention);
    if (limits.has_narrow_panels && takes_few(plan))
        choose(plan.rows == 1 ? table.attention_panel_of_1 : table.attention_panel_of_4);
    plan.weights_in_pairs = plan.in_pairs && plan.products->multiply_value_pairs != nullptr;
    const std::int64_t key_step =
        plan.key_is_transposed ? plan.key.row_bytes : plan.key.column_bytes;
    plan.converts_key = !is_taken(plan, plan.key, key_step) ||
                        (!plan.key_is_transposed && is_scattered(plan, plan.key));
    plan.converts_value =
        !is_taken(plan, plan.value, plan.value.column_bytes) || is_scattered(plan, plan.value);
}

// Whether each head's rows directly follow the previous head's rows.
bool has_rows_in_line(const head_operand& operand, std::int64_t rows, int last) {
    return operand.column_count == 0 || rows == 1 ||
           operand.outer_bytes[last] == rows * operand.row_bytes;
}

// Whether the rows of all heads can become rows of one head. Heads may also share a mask.
bool can_fold(const tile_plan& plan, int last) {
    const auto has_line = [&](const head_operand* operand) {
        return has_rows_in_line(*operand, plan.rows, last);
    };
    const auto is_line_or_shared = [&](const head_operand* operand) {
        return has_line(operand) || operand->outer_bytes[last] == 0;
    };
    return std::ranges::all_of(std::array{&plan.query, &plan.dst, &plan.statistics}, has_line) &&
           std::ranges::all_of(std::array{&plan.cond, &plan.bias}, is_line_or_shared);
}

void fold_rows(head_operand& operand, std::int64_t rows, std::int64_t heads, int last) {
    if (operand.column_count == 0) return;
    if (!has_rows_in_line(operand, rows, last)) {
        operand.shared_rows = rows;
        return;
    }
    if (rows == 1) operand.row_bytes = operand.outer_bytes[last];
    operand.outer_bytes[last] *= heads;
}

// Folds heads with few queries and the same keys and values into the rows of one head, so that keys
// and values are read once.
void fold_heads(tile_plan& plan) {
    if (plan.rows < 1 || plan.rows > most_tile_rows / 2 || plan.outer.empty()) return;
    const int last = plan.outer.rank() - 1;
    if (!can_fold(plan, last)) return;
    const bool is_shared = plan.key.outer_bytes[last] == 0 && plan.value.outer_bytes[last] == 0;
    const bool is_grouped = plan.key.shared_by == plan.value.shared_by;
    const std::int64_t count = is_shared ? plan.outer[last] : is_grouped ? plan.key.shared_by : 1;
    if (count <= 1) return;
    for (head_operand* operand : {&plan.query, &plan.cond, &plan.bias, &plan.dst, &plan.statistics})
        fold_rows(*operand, plan.rows, count, last);
    if (plan.sinks.column_count != 0) {
        plan.sinks.row_bytes = plan.sinks.outer_bytes[last];
        plan.sinks.outer_bytes[last] *= count;
    }
    plan.key.shared_by = plan.value.shared_by = 1;
    plan.outer[last] /= count;
    plan.heads /= count;
    plan.rows *= count;
    plan.folded_heads = count;
}

// With AMX and deep heads, the sums of values exceed L1, and tiles of twice as many keys read and
// write the sums half as often. Rules that give keys weight 0 lose nothing, because each panel
// omits the keys outside its queries' spans. Of another mask, fewer wide tiles would be fully
// masked.
std::int64_t keys_of_tile(const tile_plan& plan, const plan_limits& limits) {
    constexpr std::int64_t deep_columns = 128; // mutate.py: skip
    const bool has_array = plan.cond.column_count != 0 || plan.bias.column_count != 0;
    const bool is_wide = limits.has_wide_tiles && plan.multiplies_by_tiles() &&
                         plan.weights_in_pairs && !has_array &&
                         plan.numbers.fill_is_minus_infinity() && plan.columns >= deep_columns &&
                         plan.cache_pages == 0 && !plan.retains_scores();
    return is_wide ? most_tile_keys : usual_tile_keys;
}

void choose_tiles(tile_plan& plan, const plan_limits& limits) {
    plan.panel = plan.products->panel();
    const std::int64_t panels = (plan.rows + plan.panel - 1) / plan.panel;
    plan.tile_rows = std::clamp<std::int64_t>(panels * plan.panel, plan.panel, most_tile_rows);
    plan.tile_keys = keys_of_tile(plan, limits);
    if (!plan.retains_scores()) return;
    const std::int64_t retained_panels =
        most_retained_scores / std::max<std::int64_t>(1, plan.keys) / plan.panel;
    plan.tile_rows = std::clamp(retained_panels * plan.panel, plan.panel, plan.tile_rows);
}

mask_layout lay_out_mask(const tile_plan& plan, const head_operand& operand, mask_kind kind) {
    if (operand.column_count == 0) return {};
    const dims strides = with_matrix(operand.outer_bytes, operand.row_bytes, operand.column_bytes);
    const bool shares_rows = operand.shared_rows != 0; // any row tile may need all shared rows
    return make_mask_layout(kind, plan.outer, shares_rows ? operand.shared_rows : plan.rows,
                            plan.keys, strides, shares_rows ? operand.shared_rows : plan.tile_rows,
                            plan.tile_keys);
}

void lay_out_masks(tile_plan& plan) {
    plan.mask = lay_out_mask(plan, plan.cond,
                             plan.desc.cond_masks ? mask_kind::true_masks : mask_kind::true_keeps);
    const elem_type type = plan.bias.type;
    plan.bias_mask = lay_out_mask(plan, plan.bias,
                                  type == elem_type::f32    ? mask_kind::bias_f32
                                  : type == elem_type::bf16 ? mask_kind::bias_bf16
                                                            : mask_kind::bias_f16);
    // With one row tile, computing the keys' norms would cost as much as computing the scores.
    plan.can_bound_scores = !plan.retains_scores() && plan.row_tiles() > 1;
    plan.bias_mask.bounds_mixed = plan.desc.bias_on_fill || plan.can_bound_scores;
}

template <class Part>
constexpr auto floats_of = static_cast<std::int64_t>((sizeof(Part) + sizeof(float) - 1) /
                                                     sizeof(float));

// Adds room for one tile. If several row tiles or heads use the same tiles, adds room for as many
// tiles as fit L2.
tile_copies lay_out_copies(const tile_plan& plan, const head_operand& operand,
                           std::int64_t tile_floats, worker_layout& layout) {
    const bool is_used_again = plan.row_tiles() > 1 || operand.shared_by > 1;
    tile_copies copies{.slots = 1, .tile_floats = tile_floats};
    if (is_used_again && tile_floats > 0)
        copies.slots = std::clamp<std::int64_t>(most_copied_floats / tile_floats, 1,
                                                std::max<std::int64_t>(1, plan.key_tiles()));
    copies.first = add_part(layout, copies.slots * tile_floats);
    copies.records = add_part(layout, copies.slots * floats_of<tile_copy>);
    return copies;
}

worker_layout lay_out_worker(const tile_plan& plan) {
    worker_layout layout;
    const std::int64_t panel_scores = plan.tile_keys * plan.panel;
    // `scores` holds a panel's scores of one key tile; if retained, a row tile's scores of all
    // keys.
    const std::int64_t retained_tiles =
        plan.retains_scores() ? plan.key_tiles() * (plan.tile_rows / plan.panel) : 1;
    layout.queries = add_part(layout, plan.tile_rows / plan.panel * plan.panel_query_floats());
    layout.state = add_part(layout, plan.state_floats());
    layout.scores = add_part(layout, panel_scores * retained_tiles);
    layout.factor = add_part(layout, plan.tile_rows);
    if (plan.retains_scores())
        layout.tiles = add_part(layout, plan.key_tiles() * floats_of<key_tile>);
    if (plan.copies_key())
        layout.key_copies =
            lay_out_copies(plan, plan.key, plan.tile_keys * plan.depth_steps(), layout);
    const std::int64_t value_rows = plan.weights_in_pairs ? plan.tile_keys / 2 : plan.tile_keys;
    if (plan.copies_value())
        layout.value_copies = lay_out_copies(plan, plan.value, value_rows * plan.columns, layout);
    if (plan.gathers)
        layout.gathered = add_part(layout, plan.tile_keys * std::max(plan.depth, plan.columns));
    if (!plan.has_float_values() && !plan.copies_value_as_floats())
        layout.values = add_part(layout, plan.tile_keys * plan.columns);
    layout.bias = add_part(layout, panel_scores); // even without a bias: rules may have slopes
    layout.slopes = add_part(layout, plan.tile_rows);
    if (plan.cond.column_count != 0) layout.conds = add_part(layout, panel_scores / 4 + 1);
    if (plan.cond.shared_rows != 0 || plan.bias.shared_rows != 0)
        layout.mask = add_part(layout, panel_scores);
    layout.sums = add_part(layout, plan.columns + 2 * plan.panel);
    layout.spans = add_part(layout, plan.tile_rows * floats_of<row_spans>);
    layout.summaries =
        add_part(layout, (plan.tile_rows / plan.panel + 1) * floats_of<spans_summary>);
    layout.panel_spans = add_part(layout, 4 * plan.panel);
    const std::int64_t widest = std::max({plan.depth, plan.columns, plan.tile_keys});
    layout.work = add_part(layout, plan.panel * widest + 2 * row_block_elems);
    return layout;
}

} // namespace

head_operand bind_operand(const tensor_desc& operand, const dims& outer, std::int64_t rows,
                          std::int64_t columns) {
    head_operand result;
    if (operand.type == data_type::undef) return result;
    const dims shape = with_matrix(outer, rows, columns);
    // The strides of an operand without elements are unchecked.
    const bool is_empty = element_count(operand.extents) == 0;
    const dims strides =
        is_empty ? dims::filled(shape.rank(), 0) : broadcast_strides(operand, shape);
    result.type = elem_type_of(operand.type);
    result.row_bytes = strides[outer.rank()];
    result.column_bytes = strides[outer.rank() + 1];
    result.outer_bytes = without_last(strides, 2);
    result.column_count = columns;
    return result;
}

// Statistics have no columns; sinks have no rows and no columns.
head_operand bind_operand_without(int dimensions, tensor_desc operand, const dims& outer,
                                  std::int64_t rows) {
    if (operand.type == data_type::undef) return {};
    for (; dimensions > 0; --dimensions) {
        operand.extents.push_back(1);
        operand.strides_bytes.push_back(0);
    }
    return bind_operand(operand, outer, rows, 1);
}

score_steps steps_of(float scale, float soft_cap) {
    score_steps steps;
    if (scale != 1) steps.append({scale, false});
    if (soft_cap == 0) return steps;
    steps.append({soft_cap, true});
    steps.append_tanh();
    steps.append({soft_cap, false});
    return steps;
}

std::shared_ptr<const tile_plan>
make_tile_plan(const attention_desc& desc, const kernel_table& kernels, const plan_limits& limits) {
    const auto plan = std::make_shared<tile_plan>();
    plan->desc = checked_attention(desc);
    plan->desc.bias_on_fill &= plan->desc.bias.type != data_type::undef;
    plan->kernels = &kernels;
    const dims& shape = plan->desc.dst.extents;
    const int outer = shape.rank() - 2;
    plan->outer = without_last(shape, 2);
    plan->rows = plan->query_rows = shape[outer];
    plan->columns = shape[outer + 1];
    const dims& keys = plan->desc.key.extents;
    plan->keys = keys.end()[-2];
    plan->depth = keys.end()[-1];
    require_countable(*plan);
    plan->heads = element_count(plan->outer);
    plan->weights_type = elem_type_of(desc.weights_type);
    plan->numbers = {*plan->desc.scale, desc.soft_cap, steps_of(*plan->desc.scale, desc.soft_cap),
                     desc.fill};
    bind_operands(*plan);
    if (desc.page_table.type != data_type::undef) bind_pages(*plan, desc);
    if (limits.folds_heads) fold_heads(*plan);
    choose_products(*plan, limits_of(desc, limits));
    choose_tiles(*plan, limits);
    lay_out_masks(*plan);
    plan->worker = lay_out_worker(*plan);
    return plan;
}

std::shared_ptr<const tile_plan> make_tile_plan(const attention_desc& desc, isa target) {
    const auto plan = make_tile_plan(desc, kernel_table_for(target));
    const bool is_refused = plan->multiplies_by_tiles() && !may_use_tiles();
    return is_refused ? make_tile_plan(desc, kernel_table_for(isa::avx512)) : plan;
}

float number_at(const tile_plan& plan, data_type type, const void* address) {
    float numbers[row_block_elems];
    auto* const first = static_cast<std::byte*>(const_cast<void*>(address));
    plan.kernels->attention.load_rows({first, elem_type_of(type), 0, 0}, 1, 1, numbers);
    return numbers[0];
}

std::int64_t offset_bytes(const head_operand& operand, std::span<const std::int64_t> position) {
    std::int64_t bytes = 0;
    for (int d = 0; const std::int64_t number : position) {
        const bool is_last = d + 1 == std::ssize(position);
        bytes += (is_last ? number / operand.shared_by : number) * operand.outer_bytes[d++];
    }
    return bytes;
}

} // namespace maskwise
