#include "plan/access.hpp"

#include <algorithm>

namespace maskwise {
namespace {

// From this many items on, the groups around them are walked by the packing kernel's outer loop
// instead of having offsets of their own.
constexpr std::int64_t enough_items = 32;

struct level {
    std::int64_t extent;
    std::int64_t stride_bytes;
};

// The loops of a flat tile as one operand sees them, innermost first, its own neighbours merged.
struct levels {
    int count = 0;
    std::array<level, max_rank> values{};

    level& operator[](int i) { return values[static_cast<std::size_t>(i)]; }
    const level& operator[](int i) const { return values[static_cast<std::size_t>(i)]; }
};

levels levels_of(const loop_nest& nest, const tiling& tile, std::size_t operand) {
    levels found;
    for (int d = 0; d <= tile.column_loop; ++d) {
        if (tile[d] == 1) continue;
        const level next{tile[d], nest[d].stride_bytes[operand]};
        if (found.count > 0) {
            level& last = found[found.count - 1];
            if (next.stride_bytes == last.extent * last.stride_bytes) {
                last.extent *= next.extent;
                continue;
            }
        }
        found[found.count++] = next;
    }
    return found;
}

std::int64_t product(const levels& from, int first, int last) {
    std::int64_t result = 1;
    for (int i = first; i < last; ++i) result *= from[i].extent;
    return result;
}

// Offsets of the items of levels first .. last - 1, innermost fastest.
std::vector<std::int32_t> offsets_of(const levels& from, int first, int last) {
    std::vector<std::int32_t> offsets(static_cast<std::size_t>(product(from, first, last)));
    std::size_t filled = 1;
    offsets[0] = 0;
    for (int i = first; i < last; ++i) {
        const auto stride = static_cast<std::int32_t>(from[i].stride_bytes);
        const std::size_t end = filled * static_cast<std::size_t>(from[i].extent);
        for (std::size_t k = filled; k < end; ++k) offsets[k] = offsets[k - filled] + stride;
        filled = end;
    }
    return offsets;
}

int largest_power_of_two(std::int64_t bytes) {
    std::int64_t unit = 1;
    while (unit < 16 && unit * 2 <= bytes) unit *= 2;
    return static_cast<int>(unit);
}

access_kind moving_kind(std::size_t operand) {
    return operand == op_dst ? access_kind::scatter : access_kind::gather;
}

pack_fn find_pack_for(const kernel_table& kernels, const operand_access& access, int unit) {
    pack_kind kind = pack_kind::gather;
    if (access.kind == access_kind::scatter) kind = pack_kind::scatter;
    if (access.kind == access_kind::splat) kind = pack_kind::splat;
    if (access.kind == access_kind::transpose) kind = pack_kind::transpose;
    return find_pack(kernels, {kind, unit}).run;
}

// Levels from `first` on are items of access.item_bytes in the buffer. Where there are many of them
// the outermost level, which the tile's chunk is part of, becomes groups.
void lay_out_items(operand_access& access, const levels& from, int first) {
    const int last = from.count;
    const std::int64_t inner = product(from, first, last - 1);
    const bool grouped = last - first >= 2 && inner >= enough_items;
    access.offsets = offsets_of(from, first, grouped ? last - 1 : last);
    access.items = static_cast<std::int64_t>(access.offsets.size());
    if (!grouped) return;
    access.follower = follows_chunk::groups;
    access.groups = from[last - 1].extent;
    access.group_bytes = from[last - 1].stride_bytes;
    access.buffer_group_bytes = inner * access.item_bytes;
}

// The level along which the operand is contiguous, where packing by blocks pays; else -1. Few items
// or few groups pay where the others are many: planes and pixels.
int transposed_level(const levels& from, std::int64_t width) {
    const std::int64_t few = width == 1 ? 8 : 4;
    constexpr std::int64_t many = 32;
    for (int i = 1; i < from.count; ++i) {
        if (from[i].stride_bytes != width) continue;
        const std::int64_t groups = from[i].extent, items = product(from, 0, i);
        const bool pixels = from[0].stride_bytes == groups * width && from[0].extent == items;
        if ((groups >= few && items >= few) || groups >= many || (pixels && items >= many))
            return i;
    }
    return -1;
}

// Levels inside `unit` are items, `unit` is the groups, those outside it are blocks.
void lay_out_transpose(operand_access& access, const levels& from, int unit) {
    access.kind = access_kind::transpose;
    access.even_items = unit == 1;
    access.offsets = offsets_of(from, 0, unit);
    access.block_offsets = offsets_of(from, unit + 1, from.count);
    access.items = static_cast<std::int64_t>(access.offsets.size());
    access.groups = from[unit].extent;
    access.blocks = static_cast<std::int64_t>(access.block_offsets.size());
    access.group_bytes = access.item_bytes;
    access.buffer_group_bytes = access.items * access.item_bytes;
    access.follower = unit + 1 == from.count ? follows_chunk::groups : follows_chunk::blocks;
}

operand_access flat_access(const loop_nest& nest, const tiling& tile, std::size_t operand,
                           const kernel_table& kernels) {
    const std::int64_t width = nest.width_bytes[operand];
    const levels from = levels_of(nest, tile, operand);
    operand_access access;
    if (from.count == 0) return access;
    if (from.count == 1 && from[0].stride_bytes == 0) access.columns = column_class::zero;
    if (from.count == 1 && (from[0].stride_bytes == 0 || from[0].stride_bytes == width))
        return access;
    access.buffer_bytes = product(from, 0, from.count) * width + splat_slack_bytes;
    const bool run = from[0].stride_bytes == width, splat = from[0].stride_bytes == 0;
    // A few copies of each element are a few planes that are the same one.
    const bool long_splat = splat && from[0].extent > 4;
    const int unit = run || long_splat || operand == op_dst ? -1 : transposed_level(from, width);
    access.item_bytes = (run || (splat && unit < 0)) ? from[0].extent * width : width;
    access.kind = splat ? access_kind::splat : moving_kind(operand);
    if (run && from.count == 2 && from[1].stride_bytes == 0) {
        access.kind = access_kind::repeat;
        access.items = from[1].extent;
        return access;
    }
    if (unit > 0)
        lay_out_transpose(access, from, unit);
    else
        lay_out_items(access, from, (run || splat) ? 1 : 0);
    const bool moves_runs = !splat && unit < 0;
    access.pack = find_pack_for(kernels, access,
                                moves_runs ? largest_power_of_two(access.item_bytes)
                                           : static_cast<int>(width));
    return access;
}

operand_access row_access(const loop_nest& nest, const tiling& tile, std::size_t operand,
                          const kernel_table& kernels) {
    const std::int64_t width = nest.width_bytes[operand];
    operand_access access;
    access.row_bytes = tile.row_loop < 0 ? 0 : nest[tile.row_loop].stride_bytes[operand];
    if (tile.column_loop < 0) return access;
    if (nest[0].stride_bytes[operand] == 0) access.columns = column_class::zero;
    if (is_unit_or_zero(nest, 0, operand)) return access;
    levels columns;
    columns[columns.count++] = {tile[0], nest[0].stride_bytes[operand]};
    access.kind = access.row_bytes == width && operand != op_dst ? access_kind::transpose
                                                                 : moving_kind(operand);
    access.offsets = offsets_of(columns, 0, 1);
    access.block_offsets = {0};
    access.even_items = true;
    access.items = tile[0];
    access.groups = tile.row_loop < 0 ? 1 : tile[tile.row_loop];
    access.item_bytes = width;
    access.group_bytes = access.row_bytes;
    access.row_bytes = access.buffer_group_bytes = tile[0] * width;
    access.buffer_bytes = access.groups * access.row_bytes + splat_slack_bytes;
    access.pack = find_pack_for(kernels, access, static_cast<int>(width));
    return access;
}

// The tile's loops as the operand sees them, shortest stride first, without those it stands still
// in.
levels moving_levels(const loop_nest& nest, const tiling& tile, std::size_t operand) {
    levels found;
    for (int d = 0; d < nest.rank; ++d)
        if (tile[d] > 1 && nest[d].stride_bytes[operand] != 0)
            found[found.count++] = {tile[d], nest[d].stride_bytes[operand]};
    std::sort(found.values.begin(), found.values.begin() + found.count,
              [](const level& a, const level& b) { return a.stride_bytes < b.stride_bytes; });
    return found;
}

std::int64_t tile_elements(const tiling& tile, const loop_nest& nest) {
    std::int64_t elements = 1;
    for (int d = 0; d < nest.rank; ++d) elements *= tile[d];
    return elements;
}

} // namespace

std::vector<std::int32_t> lines_of_tile(const loop_nest& nest, const tiling& tile,
                                        std::size_t operand) {
    constexpr std::int64_t line_bytes = 64;
    const levels moving = moving_levels(nest, tile, operand);
    // What runs backwards is left to the hardware, too.
    if (moving.count > 0 && moving[0].stride_bytes < 0) return {};
    // Levels whose steps leave out no line make one dense piece; the others repeat it.
    std::int64_t dense_bytes = nest.width_bytes[operand];
    int i = 0;
    for (; i < moving.count && moving[i].stride_bytes <= dense_bytes + line_bytes; ++i)
        dense_bytes += (moving[i].extent - 1) * moving[i].stride_bytes;
    levels spread;
    spread[spread.count++] = {(dense_bytes + line_bytes - 1) / line_bytes, line_bytes};
    for (; i < moving.count; ++i) spread[spread.count++] = moving[i];
    // One dense piece is left to the hardware; so are lines that hold few elements each.
    if (spread.count == 1 || product(spread, 0, spread.count) > tile_elements(tile, nest) / 8)
        return {};
    return offsets_of(spread, 0, spread.count);
}

operand_access make_access(const loop_nest& nest, const tiling& tile, std::size_t operand,
                           const kernel_table& kernels) {
    return tile.form == tile_form::flat ? flat_access(nest, tile, operand, kernels)
                                        : row_access(nest, tile, operand, kernels);
}

} // namespace maskwise
