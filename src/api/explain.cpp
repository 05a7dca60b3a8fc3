#include "exec/parts.hpp"
#include "plan/select_plan.hpp"

namespace maskwise {
namespace {

std::string access_words(const operand_access& access, const char* reads) {
    static constexpr const char* packed[] = {
        "", // direct
        "a short pattern, repeated into a buffer",
        "gathered into a buffer",
        "selected into a buffer, then scattered",
        "gathered at equal distances into a buffer",
        "each element repeated into a buffer",
        "transposed into a buffer",
    };
    if (access.kind != access_kind::direct) return packed[static_cast<std::size_t>(access.kind)];
    return access.columns == column_class::unit
               ? std::string(reads) + " in place"
               : "one element for each row, " + std::string(reads) + " once";
}

std::string threads_line(const select_plan& plan) {
    const std::int64_t parts = choose_parts(plan.moved_bytes, parallel_from_bytes, plan.tiles);
    return "at least " + std::to_string(plan.moved_bytes) + " bytes are moved, " +
           (parts == 1 ? "on the caller's thread"
                       : "in " + std::to_string(parts) +
                             " parts on the threads of the caller's task arena") +
           '\n';
}

std::string kernel_line(const select_plan& plan) {
    const bool streams = plan.key.store == store_policy::stream;
    return std::to_string(plan.tiles) + " tiles of " + std::to_string(plan.shapes[0].rows) +
           " rows by " + std::to_string(plan.shapes[0].columns) + " columns, kernel " +
           to_string(plan.key) + " (" + std::string(to_string(plan.target)) + "), stores " +
           (streams ? "past" : "through") + " the caches\n";
}

std::string operand_line(const select_plan& plan, std::size_t which) {
    const bool picked = plan.pick != nullptr && (which == op_src_0 || which == op_src_1);
    return std::string(operand_names[which]) + ' ' + to_string(*operands_of(plan.desc)[which]) +
           ": " + (picked ? "picked in place; if a tile uses one source only, " : "") +
           access_words(plan.shapes[0].access[which], which == op_dst ? "written" : "read") + '\n';
}

} // namespace

inline namespace v1 {

std::string to_string(const plan& compiled) {
    return to_string(*compiled.data_);
}

std::string explain(const plan& compiled) {
    const select_plan& plan = *compiled.data_;
    if (plan.nest.elements == 0) return "dst " + to_string(plan.desc.dst.extents) + " is empty\n";
    if (plan.desc.dst.type == data_type::string)
        return std::to_string(plan.nest.elements) + " strings are copied one by one\n";
    std::string lines;
    for (const std::size_t o : every_operand) lines += operand_line(plan, o);
    return lines + kernel_line(plan) + threads_line(plan);
}

} // namespace v1
} // namespace maskwise
