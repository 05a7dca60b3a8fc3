#include "exec/run_expression.hpp"

#include "exec/parts.hpp"
#include "exec/run_select.hpp"
#include "kernel/kernel_table.hpp"

namespace maskwise {
namespace {

using operand_addresses = std::array<std::byte*, jit::max_operands>;

// Elements of a loop in one tile.
std::int64_t step_of(const expression_plan& plan, int loop) {
    return loop == 0 ? plan.columns : loop == 1 ? plan.rows : 1;
}

// Tiles count along the innermost loop first.
void run_tile(const expression_plan& plan, const operand_addresses& at, std::int64_t number) {
    jit::expression_tile tile{at, {}, 1, plan.columns};
    for (int d = 0; d < plan.nest.rank; ++d) {
        const auto& loop = plan.nest[d];
        const std::int64_t step = step_of(plan, d), count = (loop.extent + step - 1) / step;
        const std::int64_t first = number % count * step;
        number /= count;
        for (std::size_t o = 0; o < jit::max_operands; ++o)
            tile.at[o] += first * loop.stride_bytes[o];
        if (d == 0) tile.columns = std::min(step, loop.extent - first);
        if (d == 1) {
            tile.rows = std::min(step, loop.extent - first);
            tile.row_bytes = loop.stride_bytes;
        }
    }
    plan.code->run()(&tile);
}

using input_addresses = std::span<const void* const>;

void run_loop(const expression_plan& plan, input_addresses inputs, void* dst) {
    operand_addresses at{};
    for (std::size_t i = 0; i < inputs.size(); ++i)
        at[i] = static_cast<std::byte*>(const_cast<void*>(inputs[i]));
    at[jit::dst_operand] = static_cast<std::byte*>(dst);
    for (std::size_t o = 0; o < jit::max_operands; ++o)
        if (at[o] != nullptr) at[o] += plan.nest.first_bytes[o];
    const std::int64_t parts = choose_parts(plan.moved_bytes, plan.tiles);
    run_tiles_in_parts(plan.tiles, parts, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t tile = first; tile < last; ++tile) run_tile(plan, at, tile);
        if (plan.stores == store_policy::stream) finish_streaming(); // fence
    });
}

void run_in_order(const expression_plan& plan, input_addresses inputs, void* dst,
                  std::byte* scratch) {
    std::array<const void*, jit::max_inputs> ordered{};
    std::ranges::copy(inputs, ordered.begin());
    void* result = dst;
    for (const reordering& change : plan.reorderings) {
        std::byte* const place = scratch + change.offset_bytes;
        if (change.operand == jit::dst_operand) {
            result = place;
            continue;
        }
        run_copy(*change.copy, inputs[change.operand], place);
        ordered[change.operand] = place;
    }
    run_loop(plan, std::span(ordered).first(inputs.size()), result);
    if (result != dst) run_copy(*plan.reorderings[0].copy, result, dst);
}

} // namespace

void run_expression(const expression_plan& plan, input_addresses inputs, void* dst) {
    if (plan.tiles == 0) return;
    if (plan.reorderings.empty()) return run_loop(plan, inputs, dst);
    auto memory = plan.scratch.take();
    if (!memory)
        memory =
            std::make_unique_for_overwrite<std::byte[]>(plan.scratch_bytes + scratch_alignment);
    run_in_order(plan, inputs, dst, first_aligned(memory.get()));
    plan.scratch.give_back(std::move(memory));
}

} // namespace maskwise
