#include "exec/run_select.hpp"

#include "exec/parts.hpp"
#include "exec/tile_walk.hpp"

namespace maskwise {
namespace {

struct run_context {
    const select_plan& plan;
    select_fn kernel;
    operand_pointers pointers;
    std::int64_t parts;
};

void run_part(const void* raw_context, std::int64_t part) {
    const auto& context = *static_cast<const run_context*>(raw_context);
    const auto [first, last] = tiles_of_part(context.plan.tiles, part, context.parts);
    run_tiles(context.plan, context.kernel, context.pointers, first, last);
    if (context.plan.key.store == store_policy::stream) finish_streaming();
}

// The whole Select is one tile of operands that need no packing.
void run_single_tile(const select_plan& plan, const operand_pointers& at) {
    plan.run(make_tile(plan.shapes[0], loops_begin(plan, at)));
}

} // namespace

void run_select(const select_plan& plan, const void* cond, const void* src_0, const void* src_1,
                void* dst) {
    if (plan.tiles == 0) return;
    const operand_pointers at{static_cast<const std::byte*>(cond),
                              static_cast<const std::byte*>(src_0),
                              static_cast<const std::byte*>(src_1), static_cast<std::byte*>(dst)};
    if (plan.tiles == 1 && !plan.packs && plan.key.store == store_policy::plain)
        return run_single_tile(plan, at);
    // In place dst's lines are in the cache already, and most of them may not change at all.
    const bool in_place = dst == src_0 || dst == src_1;
    const std::int64_t parts = choose_parts(plan.moved_bytes, plan.tiles);
    const run_context context{plan, in_place ? plan.run_plain : plan.run, at, parts};
    run_parts(parts, run_part, &context);
}

} // namespace maskwise
