#include "attention/gradients_plan.hpp"

#include "attention/attention_checks.hpp"
#include "base/checked.hpp"
#include "plan/collapse.hpp"
#include "plan/row_plan.hpp"
#include "tensor/data_type.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace maskwise {
namespace {

// Upper bound on work items. 24 items balance the load of many threads. Each item has its own sums
// of key and value gradients, so more items need more memory.
constexpr std::int64_t most_items = 24;
// Upper bound on the memory of all items' sums. Ignored if one item per group already needs more.
constexpr std::int64_t most_sums_bytes = 32 << 20;

void refuse(const std::string& fault) {
    throw argument_error("attention gradients: " + fault);
}

void check_attention(const attention_desc& desc) {
    if (desc.order != attention_order::tiles) refuse("the order is not tiles");
    if (desc.nan_as_zero) refuse("nan_as_zero is not supported");
    if (desc.page_table.type != data_type::undef) refuse("page_table is not supported");
    if (desc.grouped_queries && heads_of(desc.key) != heads_of(desc.value))
        refuse("key has " + std::to_string(heads_of(desc.key)) + " heads, value " +
               std::to_string(heads_of(desc.value)));
}

// An undef gradient gets `type`. A gradient without extents becomes dense.
void complete(const char* name, tensor_desc& gradient, data_type type, const dims& extents,
              bool is_written) {
    const std::string whole_name = std::string("attention gradients: ") + name;
    if (gradient.type == data_type::undef) gradient = {type, {}};
    if (gradient.extents.empty()) gradient = {gradient.type, extents};
    if (!computes_in_f32(gradient.type))
        throw argument_error(whole_name + " is " + std::string(to_string(gradient.type)) +
                             ", expected f32, bf16 or f16");
    if (gradient.extents != extents)
        throw shape_error(whole_name + " is " + to_string(gradient.extents) + ", expected " +
                          to_string(extents));
    fill_in_strides(gradient);
    if (gradient.strides_bytes.rank() != gradient.extents.rank())
        throw argument_error(whole_name + " has strides " + to_string(gradient.strides_bytes) +
                             ", expected " + std::to_string(extents.rank()) + " strides");
    span_bytes(gradient); // throws on overflow
    if (is_written) require_apart(gradient, whole_name);
}

void complete_sum(const char* name, tensor_desc& gradient, const tensor_desc& operand) {
    if (gradient.type == data_type::undef) return;
    if (operand.type == data_type::undef) refuse(std::string(name) + " has no operand");
    if (gradient.type != data_type::f32) refuse(std::string(name) + " is not f32");
    complete(name, gradient, data_type::f32, operand.extents, true);
}

dims shape_of(dims outer, const tensor_desc& operand, bool has_own_heads) {
    if (has_own_heads) outer[outer.rank() - 1] = heads_of(operand);
    const dims& extents = operand.extents;
    outer.push_back(extents[extents.rank() - 2]);
    outer.push_back(extents[extents.rank() - 1]);
    return outer;
}

attention_gradients_desc checked(attention_gradients_desc desc) {
    attention_desc& attention = desc.attention;
    attention = checked_attention(attention);
    check_attention(attention);
    const dims& dst = attention.dst.extents;
    if (attention.statistics.type == data_type::undef) {
        attention.statistics = {data_type::f32, without_last(dst, 1)};
        fill_in_strides(attention.statistics);
    }
    const dims outer = without_last(dst, 2);
    const bool grouped = attention.grouped_queries;
    const data_type type = attention.query.type;
    complete("dst_gradient", desc.dst_gradient, attention.dst.type, dst, false);
    complete("query_gradient", desc.query_gradient, type, shape_of(outer, attention.query, false),
             true);
    complete("key_gradient", desc.key_gradient, type, shape_of(outer, attention.key, grouped),
             true);
    complete("value_gradient", desc.value_gradient, type, shape_of(outer, attention.value, grouped),
             true);
    complete_sum("bias_gradient", desc.bias_gradient, attention.bias);
    complete_sum("sinks_gradient", desc.sinks_gradient, attention.sinks);
    return desc;
}

// Whether keys, values and dst's gradient can be read in place as bf16 pairs.
bool may_take_pairs(const attention_gradients_desc& desc) {
    const auto has_pairs = [](const tensor_desc& operand) {
        const dims& strides = operand.strides_bytes;
        return operand.type == data_type::bf16 &&
               operand.extents[operand.extents.rank() - 1] % 2 == 0 &&
               strides[strides.rank() - 1] == bytes_of(elem_type::bf16);
    };
    return has_pairs(desc.attention.key) && has_pairs(desc.attention.value) &&
           has_pairs(desc.dst_gradient);
}

void bind_gradients(gradients_plan& plan) {
    const tile_plan& attention = *plan.attention;
    const attention_gradients_desc& desc = plan.desc;
    const dims& outer = attention.outer;
    plan.dst_gradient = bind_operand(desc.dst_gradient, outer, attention.rows, attention.columns);
    plan.query_gradient = bind_operand(desc.query_gradient, outer, attention.rows, attention.depth);
    plan.key_gradient = bind_operand(desc.key_gradient, outer, attention.keys, attention.depth);
    plan.value_gradient =
        bind_operand(desc.value_gradient, outer, attention.keys, attention.columns);
    plan.bias_gradient = bind_operand(desc.bias_gradient, outer, attention.rows, attention.keys);
    plan.sinks_gradient = bind_operand_without(2, desc.sinks_gradient, outer, attention.rows);
    plan.group = attention.key.shared_by;
    plan.key_gradient.shared_by = plan.value_gradient.shared_by = plan.group;
}

void choose_parts(gradients_plan& plan) {
    const std::int64_t groups = std::max<std::int64_t>(1, plan.groups());
    const wide bytes = wide{plan.sums_floats()} * groups * std::int64_t{sizeof(float)};
    const std::int64_t row_tiles = plan.group * plan.attention->row_tiles();
    plan.parts = std::min(row_tiles, (most_items + groups - 1) / groups);
    if (bytes * plan.parts > most_sums_bytes)
        plan.parts =
            bytes > most_sums_bytes ? 1 : most_sums_bytes / static_cast<std::int64_t>(bytes);
    plan.parts = std::max<std::int64_t>(1, plan.parts);
}

void lay_out_worker(gradients_plan& plan) {
    const tile_plan& attention = *plan.attention;
    gradients_layout& layout = plan.worker;
    layout.floats = attention.worker.floats;
    const auto add = [&](std::int64_t floats) { return add_part(layout, floats); };
    const std::int64_t panel = attention.panel, rows = attention.tile_rows;
    const std::int64_t depth = attention.depth, columns = attention.columns;
    const std::int64_t tile = attention.tile_keys * panel;
    layout.dst_panels = add(rows * padded_elems(columns));
    layout.query_blocks = add(rows * plan.blocks(depth) * panel);
    layout.dst_blocks = add(rows * plan.blocks(columns) * panel);
    layout.dst = add(panel * padded_elems(columns));
    layout.dst_gradient = add(panel * padded_elems(columns));
    layout.products = add(tile);
    if (attention.in_pairs) {
        layout.weight_rows = add((tile + 1) / 2);
        layout.gradient_rows = add((tile + 1) / 2);
        layout.key_pairs = add((attention.tile_keys + 1) / 2 * depth);
    }
    layout.query_gradients = add(rows * depth);
    for (std::int64_t* part : {&layout.log_sums, &layout.maxima, &layout.deltas}) *part = add(rows);
    layout.rows = add(std::max(attention.tile_keys, panel) * std::max(depth, columns) +
                      2 * row_block_elems + attention.tile_rows);
}

} // namespace

std::shared_ptr<const gradients_plan> make_gradients_plan(const attention_gradients_desc& desc,
                                                          const kernel_table& kernels) {
    const auto plan = std::make_shared<gradients_plan>();
    plan->desc = checked(desc);
    plan->attention = make_tile_plan(plan->desc.attention, kernels,
                                     {.folds_heads = false,
                                      .has_narrow_panels = false,
                                      .has_pairs = may_take_pairs(plan->desc),
                                      .has_wide_tiles = false});
    bind_gradients(*plan);
    choose_parts(*plan);
    lay_out_worker(*plan);
    return plan;
}

std::shared_ptr<const gradients_plan> make_gradients_plan(const attention_gradients_desc& desc,
                                                          isa target) {
    const auto plan = make_gradients_plan(desc, kernel_table_for(target));
    const bool is_refused = plan->attention->multiplies_by_tiles() && !may_use_tiles();
    return is_refused ? make_gradients_plan(desc, kernel_table_for(isa::avx512)) : plan;
}

} // namespace maskwise
