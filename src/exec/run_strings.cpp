#include "exec/odometer.hpp"
#include "exec/parts.hpp"
#include "exec/tile_walk.hpp"

#include <algorithm>
#include <atomic>
#include <exception>

namespace maskwise {
namespace {

void select_string(const per_operand<std::byte*>& element) {
    const bool is_true = *element[op_cond] != std::byte{0};
    const auto* src = reinterpret_cast<const std::string*>(element[is_true ? op_src_0 : op_src_1]);
    *reinterpret_cast<std::string*>(element[op_dst]) = *src;
}

void select_strings(const loop_nest& nest, const per_operand<std::byte*>& begin,
                    std::int64_t part) {
    const std::int64_t first = part * strings_per_part;
    const std::int64_t last = std::min(first + strings_per_part, nest.elements);
    odometer<loop_dim> element({nest.begin(), nest.end()}, begin, first);
    for (std::int64_t i = first; i < last; ++i, element.advance())
        select_string(element.pointers());
}

} // namespace

void run_strings(const select_plan& plan, const operand_pointers& pointers,
                 const parallel_loop* loop) {
    if (plan.nest.elements == 0) return;
    const per_operand<std::byte*> begin = loops_begin(plan, pointers);
    const std::int64_t parts = (plan.nest.elements + strings_per_part - 1) / strings_per_part;
    std::atomic<bool> failed{false}; // the thread that sets it writes `failure`
    std::exception_ptr failure;
    const auto run_part = [&](std::int64_t part) {
        if (failed) return;
        try {
            select_strings(plan.nest, begin, part);
        } catch (...) {
            if (!failed.exchange(true)) failure = std::current_exception();
        }
    };
    run_in_parts(parts, run_part, loop);
    if (failure) std::rethrow_exception(failure);
}

} // namespace maskwise
