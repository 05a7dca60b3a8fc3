#include "exec/run_select.hpp"

#include "exec/parts.hpp"
#include "exec/tile_walk.hpp"

namespace maskwise {
namespace {

// Not inlined, because inlining would give a Select of one tile a stack frame.
[[gnu::noinline]] void run_many_tiles(const select_plan& plan, const operand_pointers& pointers,
                                      const parallel_loop* loop) {
    if (plan.tiles == 0) return run_strings(plan, pointers, loop);
    // Stores in place are not streamed: dst's lines are already cached, and the kernel skips blocks
    // that keep their value.
    const bool in_place = pointers.dst == pointers.src_0 || pointers.dst == pointers.src_1;
    const std::int64_t parts =
        choose_parts(plan.moved_bytes, parallel_from_bytes, plan.tiles, loop);
    const select_fn kernel = in_place ? plan.run_plain : plan.run;
    const auto run_range = [&](std::int64_t first, std::int64_t last) {
        run_tiles(plan, kernel, pointers, first, last);
        if (plan.key.store == store_policy::stream) finish_streaming(); // mutate.py: skip
    };
    run_tiles_in_parts(plan.tiles, parts, run_range, loop);
}

} // namespace

void run_select(const select_plan& plan, const void* cond, const void* src_0, const void* src_1,
                void* dst, const parallel_loop* loop) {
    const operand_pointers pointers{
        static_cast<const std::byte*>(cond), static_cast<const std::byte*>(src_0),
        static_cast<const std::byte*>(src_1), static_cast<std::byte*>(dst)};
    // The whole Select is one tile of operands that need no packing.
    if (plan.tiles == 1 && !plan.packs && plan.key.store == store_policy::plain)
        return plan.run(make_tile(plan.shapes[0], loops_begin(plan, pointers)));
    run_many_tiles(plan, pointers, loop);
}

void run_copy(const select_plan& plan, const void* src, void* dst, const parallel_loop* loop) {
    constexpr bool always = true;
    run_select(plan, &always, src, src, dst, loop);
}

} // namespace maskwise
