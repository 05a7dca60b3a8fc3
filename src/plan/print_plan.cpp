#include "plan/select_plan.hpp"

namespace maskwise {
namespace {

void append(std::string& text, char separator, std::int64_t value) {
    if (!text.empty()) text += separator;
    text += std::to_string(value);
}

// "unit", "zero", or how the operand is packed: "transpose:8" transposes at most 8 items at once.
// "+ahead" if lines are prefetched.
std::string access_text(const operand_access& access) {
    const std::int64_t width = std::max<std::int64_t>(1, access.layout.item_bytes);
    std::string text = access.columns == column_class::unit ? "unit" : "zero";
    if (access.kind != access_kind::direct) text = to_string(access.kind);
    if (access.kind == access_kind::transpose && access.layout.max_items < max_block_items / width)
        append(text, ':', access.layout.max_items);
    return access.lines.empty() ? text : text + "+ahead";
}

// "12x128x64": extents of the nest, outermost first.
std::string nest_text(int rank, auto&& extent_of) {
    std::string text;
    for (int d = rank - 1; d >= 0; --d) append(text, 'x', extent_of(d));
    return text.empty() ? "1" : text;
}

// "2x40 order=12>128": the number of tiles of each grid loop, then the elements of each grid loop.
// The outermost loop is first.
std::string grid_text(const select_plan& plan) {
    std::string counts, extents;
    for (std::size_t i = plan.grid.size(); i-- > 0;) {
        append(counts, 'x', plan.grid[i].extent);
        append(extents, '>', plan.grid[i].elements);
    }
    return counts.empty() ? "1" : counts + " order=" + extents;
}

} // namespace

std::string to_string(const select_plan& plan) {
    if (plan.nest.elements == 0) return "empty";
    const std::string nest =
        "nest=" + nest_text(plan.nest.rank, [&](int d) { return plan.nest[d].extent; });
    if (plan.desc.dst.type == data_type::string) return nest + " kernel=strings";
    const tile_shape& whole = plan.shapes[0];
    std::string accesses;
    for (const std::size_t o : every_operand)
        accesses.append(" ")
            .append(operand_names[o])
            .append("=")
            .append(access_text(whole.access[o]));
    return nest + " box=" + nest_text(plan.nest.rank, [&](int d) { return plan.tile[d]; }) +
           " tile=" + std::to_string(whole.rows) + 'x' + std::to_string(whole.columns) +
           " grid=" + grid_text(plan) + accesses + " kernel=" + to_string(plan.key) +
           (plan.pick == nullptr ? "" : " mixed=pick") +
           " isa=" + std::string(to_string(plan.target));
}

} // namespace maskwise
