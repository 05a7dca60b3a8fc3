#include "plan/loop_order.hpp"
#include "plan/plan_data.hpp"

#include <cassert>

namespace maskwise {
namespace {

grid_loop make_grid_loop(const loop_nest& nest, const tiling& tile, int loop) {
    grid_loop result;
    result.extent = nest[loop].extent;
    result.tile = tile[loop];
    result.count = (result.extent + result.tile - 1) / result.tile;
    for (std::size_t o = 0; o < operand_count; ++o)
        result.step_bytes[o] = nest[loop].stride_bytes[o] * result.tile;
    return result;
}

void lay_out_grid(select_plan& plan) {
    const loop_order order = choose_loop_order(plan.nest, plan.tile);
    plan.tiles = plan.nest.elements == 0 ? 0 : 1;
    for (int i = 0; i < order.count; ++i) {
        const int loop = order.loops[static_cast<std::size_t>(i)];
        const grid_loop next = make_grid_loop(plan.nest, plan.tile, loop);
        if (next.count == 1) continue;
        if (loop == plan.tile.row_loop) plan.row_grid = plan.grid_rank;
        if (loop == plan.tile.column_loop) plan.column_grid = plan.grid_rank;
        plan.grid[static_cast<std::size_t>(plan.grid_rank++)] = next;
        plan.tiles *= next.count;
    }
}

void measure_tile(select_plan& plan) {
    const tiling& tile = plan.tile;
    if (tile.row_loop >= 0) plan.rows = tile[tile.row_loop];
    if (tile.column_loop >= 0) plan.chunk = tile[tile.column_loop];
    if (tile.form == tile_form::flat)
        for (int d = 0; d < tile.column_loop; ++d) plan.columns_per_chunk *= tile[d];
}

void connect_operands(select_plan& plan, const kernel_table& kernels) {
    std::int64_t scratch = 0;
    for (std::size_t o = 0; o < operand_count; ++o) {
        plan.access[o] = make_access(plan.nest, plan.tile, o, kernels);
        plan.buffer_offset[o] = scratch;
        scratch += (plan.access[o].buffer_bytes + 63) / 64 * 64;
        plan.packs = plan.packs || plan.access[o].kind != access_kind::direct;
    }
    assert(scratch <= max_scratch_bytes);
    for (const std::size_t o : {op_cond, op_src_0, op_src_1})
        if (plan.access[o].kind != access_kind::direct && plan.tiles > 1)
            plan.access[o].lines = lines_of_tile(plan.nest, plan.tile, o);
    const operand_access& cond = plan.access[op_cond];
    plan.cond_is_constant =
        cond.columns == column_class::zero && (plan.rows == 1 || cond.row_bytes == 0);
}

std::int64_t distinct_bytes(const loop_nest& nest, std::size_t operand) {
    std::int64_t bytes = nest.width_bytes[operand];
    for (int d = 0; d < nest.rank; ++d)
        if (nest[d].stride_bytes[operand] != 0) bytes *= nest[d].extent;
    return bytes;
}

void choose_kernels(select_plan& plan, const kernel_table& kernels, std::int64_t stream_from) {
    const std::int64_t dst_bytes = plan.nest.elements * plan.nest.width_bytes[op_dst];
    const bool direct = plan.access[op_dst].kind == access_kind::direct;
    plan.key = {static_cast<int>(plan.nest.width_bytes[op_dst]), plan.access[op_cond].columns,
                plan.access[op_src_0].columns, plan.access[op_src_1].columns, store_policy::plain};
    plan.run_plain = find_select(kernels, plan.key).run;
    if (direct && dst_bytes >= stream_from) plan.key.store = store_policy::stream;
    plan.run = find_select(kernels, plan.key).run;
}

} // namespace

std::shared_ptr<const select_plan> build_plan(const select_desc& desc, isa target,
                                              std::int64_t stream_from_bytes) {
    auto plan = std::make_shared<select_plan>();
    const kernel_table& kernels = kernel_table_for(target);
    plan->desc = desc;
    plan->target = target;
    plan->nest = make_loop_nest(desc);
    if (desc.dst.type == data_type::string) return plan;
    plan->tile = choose_tiling(plan->nest);
    measure_tile(*plan);
    lay_out_grid(*plan);
    connect_operands(*plan, kernels);
    choose_kernels(*plan, kernels, stream_from_bytes);
    for (std::size_t o = 0; o < operand_count; ++o)
        plan->moved_bytes += plan->tiles == 0 ? 0 : distinct_bytes(plan->nest, o);
    return plan;
}

} // namespace maskwise
