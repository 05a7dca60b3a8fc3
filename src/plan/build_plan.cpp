#include "plan/loop_order.hpp"
#include "plan/select_plan.hpp"

#include <algorithm>
#include <cassert>

namespace maskwise {
namespace {

void add_lines(tile_shape& shape, const loop_nest& nest, const tile_extents& extents) {
    bool packs = false;
    int moved = 0;
    for (const operand_access& access : shape.access) {
        const bool is_pattern =
            access.kind == access_kind::repeat || access.kind == access_kind::splat;
        packs = packs || access.kind != access_kind::direct;
        moved += access.kind != access_kind::direct && !is_pattern;
    }
    if (!packs) return;
    for (const std::size_t o : every_operand) {
        const access_kind kind = shape.access[o].kind;
        if (o != op_dst || kind != access_kind::direct)
            shape.access[o].lines = lines_of_tile(nest, extents, o, kind, moved == 1);
    }
}

// Whether packing the operand moves its elements one by one.
bool is_moved_singly(const select_plan& plan, std::size_t operand) {
    const operand_access& access = plan.shapes[0].access[operand];
    const bool in_runs = access.layout.item_bytes != plan.nest.width_bytes[operand];
    return access.kind == access_kind::step || access.kind == access_kind::transpose ||
           (access.kind == access_kind::gather && !in_runs);
}

// Whether the operand's elements move one by one, and no two rows or tiles move the same element.
bool is_moved_everywhere(const select_plan& plan, std::size_t operand) {
    if (!is_moved_singly(plan, operand)) return false;
    for (const int d : plan.nest.numbers()) {
        const bool within_columns =
            d < plan.tile.column_loops && plan.tile[d] == plan.nest[d].extent;
        if (!within_columns && plan.nest[d].stride_bytes[operand] == 0) return false;
    }
    return true;
}

// Whether the pick kernel runs tiles that select from both sources. Elements narrower than 16 bytes
// are packed by whole vectors, which is faster. Checks the full tile only: a tail tile may happen
// to have runs of one element.
bool uses_pick_kernel(const select_plan& plan) {
    constexpr std::int64_t picked_width_bytes = 16;
    return plan.nest.width_bytes[op_dst] == picked_width_bytes &&
           is_moved_everywhere(plan, op_src_0) && is_moved_everywhere(plan, op_src_1);
}

std::vector<std::int32_t> pick_offsets(const select_plan& plan, const tile_extents& extents) {
    const auto offsets_of = [&](std::size_t o) {
        return column_offsets(plan.nest, plan.tile, extents, o);
    };
    const auto offsets_0 = offsets_of(op_src_0), offsets_1 = offsets_of(op_src_1);
    std::vector<std::int32_t> both;
    for (std::size_t c = 0; c < offsets_0.size(); ++c)
        both.insert(both.end(), {offsets_1[c], offsets_0[c]});
    return both;
}

// A shape's index has one bit per loop with a tail tile, set in that tail tile.
tile_extents extents_of_shape(const select_plan& plan, std::size_t index) {
    tile_extents extents = plan.tile.extent;
    std::size_t bit = 1;
    for (const int d : plan.nest.numbers()) {
        const std::int64_t rest = plan.nest[d].extent % plan.tile[d];
        if (rest == 0) continue;
        if ((index & bit) != 0) extents[static_cast<std::size_t>(d)] = rest;
        bit *= 2;
    }
    return extents;
}

tile_shape make_shape(const select_plan& plan, const tile_extents& extents,
                      const kernel_table& kernels) {
    tile_shape shape;
    const int row_loop = plan.tile.row_loop;
    if (row_loop >= 0) shape.rows = extents[static_cast<std::size_t>(row_loop)];
    shape.columns = elements_of(extents) / shape.rows;
    for (const std::size_t o : every_operand)
        shape.access[o] = make_access(plan.nest, plan.tile, extents, o, kernels);
    return shape;
}

grid_loop make_grid_loop(const select_plan& plan, int loop) {
    grid_loop result;
    const std::int64_t tile = plan.tile[loop];
    result.elements = plan.nest[loop].extent;
    result.extent = (result.elements + tile - 1) / tile;
    for (const std::size_t o : every_operand)
        result.stride_bytes[o] = plan.nest[loop].stride_bytes[o] * tile;
    if (result.elements % tile == 0) return result;
    result.last_shape = 1;
    for (int d = 0; d < loop; ++d)
        if (plan.nest[d].extent % plan.tile[d] != 0) result.last_shape *= 2;
    return result;
}

void lay_out_grid(select_plan& plan) {
    per_operand<bool> is_moved{};
    for (const std::size_t o : every_operand) is_moved[o] = is_moved_singly(plan, o);
    const loop_order order = choose_loop_order(plan.nest, plan.tile, is_moved);
    plan.tiles = plan.nest.elements == 0 ? 0 : 1;
    for (int i = order.count - 1; i >= 0; --i) {
        const grid_loop next = make_grid_loop(plan, order.loops[static_cast<std::size_t>(i)]);
        if (next.extent == 1) continue;
        plan.grid.push_back(next);
        plan.tiles *= next.extent;
    }
}

// Returns the operand's largest buffer over all tile shapes. Tail tiles may pack an overlapping
// source that full tiles read in place.
std::int64_t buffer_bytes(const select_plan& plan, std::size_t operand) {
    std::int64_t most = 0;
    for (const tile_shape& shape : plan.shapes)
        most = std::max(most, shape.access[operand].buffer_bytes);
    return (most + 63) / 64 * 64;
}

void make_shapes(select_plan& plan, const kernel_table& kernels) {
    const auto is_cut = [&](int d) { return plan.nest[d].extent % plan.tile[d] != 0; };
    const std::size_t count = std::size_t{1} << std::ranges::count_if(plan.nest.numbers(), is_cut);
    for (std::size_t i = 0; i < count; ++i)
        plan.shapes.push_back(make_shape(plan, extents_of_shape(plan, i), kernels));
}

void connect_operands(select_plan& plan) {
    if (plan.tiles > 1)
        for (std::size_t i = 0; i < plan.shapes.size(); ++i)
            add_lines(plan.shapes[i], plan.nest, extents_of_shape(plan, i));
    if (uses_pick_kernel(plan))
        for (std::size_t i = 0; i < plan.shapes.size(); ++i)
            plan.shapes[i].pick_offsets = pick_offsets(plan, extents_of_shape(plan, i));
    std::int64_t scratch = 0;
    for (const std::size_t o : every_operand) {
        const operand_access& access = plan.shapes[0].access[o];
        plan.buffer_offset[o] = scratch;
        scratch += buffer_bytes(plan, o);
        if (access.kind == access_kind::gather) plan.windows_end[o] = windows_end(plan.nest, o);
        plan.packs = plan.packs || access.kind != access_kind::direct;
    }
    assert(scratch <= max_scratch_bytes);
    plan.scratch_bytes = scratch;
}

// Whether cond is constant along each row and rows span several cache lines, so only the selected
// source is read. Shorter rows also fetch lines of the other source.
bool reads_one_source_per_row(const select_plan& plan) {
    constexpr std::int64_t some_lines_bytes = 256;
    const tile_shape& shape = plan.shapes[0];
    return shape.access[op_cond].columns == column_class::zero &&
           shape.columns * plan.nest.width_bytes[op_dst] >= some_lines_bytes;
}

std::int64_t count_moved_bytes(const select_plan& plan) {
    if (plan.tiles == 0) return 0;
    const auto bytes = [&](std::size_t o) { return distinct_bytes(plan.nest, o); };
    std::int64_t sources = bytes(op_src_0) + bytes(op_src_1);
    if (reads_one_source_per_row(plan)) sources = std::min(sources, bytes(op_dst));
    return bytes(op_cond) + sources + bytes(op_dst);
}

// Whether rows have few cache lines and are not aligned to lines. Many lines are then written in
// part and must be read first. Plain stores let the hardware prefetch these lines.
bool rows_end_within_lines(const select_plan& plan) {
    constexpr std::int64_t few_lines = 4;
    const tile_shape& whole = plan.shapes[0];
    const std::int64_t bytes = whole.columns * plan.nest.width_bytes[op_dst];
    const std::int64_t step = whole.access[op_dst].row_bytes;
    return whole.rows > 1 && bytes < few_lines * line_bytes &&
           (bytes % line_bytes != 0 || step % line_bytes != 0);
}

void choose_kernels(select_plan& plan, const kernel_table& kernels, std::int64_t stream_from) {
    const auto& access = plan.shapes[0].access;
    const bool direct = access[op_dst].kind == access_kind::direct;
    plan.key = {static_cast<int>(plan.nest.width_bytes[op_dst]), access[op_cond].columns,
                access[op_src_0].columns, access[op_src_1].columns, store_policy::plain};
    plan.run_plain = find_kernel(kernels.selects, plan.key).run;
    if (direct && plan.moved_bytes >= stream_from && !rows_end_within_lines(plan))
        plan.key.store = store_policy::stream;
    if (!plan.shapes[0].pick_offsets.empty())
        plan.pick = find_kernel(kernels.picks, {plan.key.width_bytes, plan.key.cond}).run;
    plan.run = find_kernel(kernels.selects, plan.key).run;
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
    make_shapes(*plan, kernels);
    lay_out_grid(*plan);
    connect_operands(*plan);
    plan->moved_bytes = count_moved_bytes(*plan);
    choose_kernels(*plan, kernels, stream_from_bytes);
    return plan;
}

} // namespace maskwise
