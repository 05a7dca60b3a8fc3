#include "plan/access.hpp"

#include "plan/transposition.hpp"

#include <algorithm>

namespace maskwise {
namespace {

// With this many items per group, the packing kernel's loop over groups costs little.
constexpr std::int64_t enough_items = 32;
// Upper bound on the prefetched lines, so that the current tile stays in L1.
constexpr std::int64_t most_lines = 512;

level level_of(const loop_nest& nest, const tile_extents& extents, int d, std::size_t operand) {
    return {extents[static_cast<std::size_t>(d)], nest[d].stride_bytes[operand]};
}

// Omits loops along which the full tile has one element. Tail tiles omit the same loops.
levels columns_of(const loop_nest& nest, const tiling& tile, const tile_extents& extents,
                  std::size_t operand) {
    levels columns;
    for (int d = 0; d < tile.column_loops; ++d)
        if (tile[d] > 1) columns.add(level_of(nest, extents, d, operand));
    return columns;
}

int largest_power_of_two(std::int64_t bytes) {
    std::int64_t unit = 1;
    while (unit < 16 && unit * 2 <= bytes) unit *= 2;
    return static_cast<int>(unit);
}

// Kernels that move runs are keyed by the bytes of one move, other kernels by the element's width.
pack_fn find_pack(const kernel_table& kernels, const operand_access& access, std::int64_t width) {
    const bool moves_runs =
        access.kind == access_kind::gather || access.kind == access_kind::scatter;
    const int unit =
        moves_runs ? largest_power_of_two(access.layout.item_bytes) : static_cast<int>(width);
    return find_kernel(kernels.packs, {access.kind, unit}).run;
}

// Level `next` becomes the groups, the outer levels become blocks.
void lay_out_groups(operand_access& access, const levels& loops, int next) {
    if (next == loops.count) return;
    access.layout.groups = loops[next].extent;
    access.layout.group_bytes = loops[next].stride_bytes;
    access.layout.block_offsets = offsets_of(loops, next + 1, loops.count);
    access.layout.blocks = static_cast<std::int64_t>(access.layout.block_offsets.size());
}

// The levels from `first` on become items until there are enough_items. The remaining levels become
// groups and blocks. A single remaining level also becomes items if the total is at most twice
// enough_items.
void lay_out_items(operand_access& access, const levels& loops, int first) {
    int last = first;
    while (last < loops.count && product(loops, first, last) < enough_items) ++last;
    if (last + 1 == loops.count && product(loops, first, loops.count) <= 2 * enough_items) ++last;
    access.layout.offsets = offsets_of(loops, first, last);
    access.layout.items = static_cast<std::int64_t>(access.layout.offsets.size());
    access.layout.buffer_group_bytes = access.layout.items * access.layout.item_bytes;
    lay_out_groups(access, loops, last);
}

bool suits_step_kernel(const levels& loops) {
    return loops[0].extent >= enough_items;
}

void lay_out_steps(operand_access& access, const levels& loops) {
    access.kind = access_kind::step;
    access.layout.offsets = {0, static_cast<std::int32_t>(loops[0].stride_bytes)};
    access.layout.items = loops[0].extent;
    access.layout.buffer_group_bytes = access.layout.items * access.layout.item_bytes;
    lay_out_groups(access, loops, 1);
}

// Byte offsets of the elements that the levels `numbers` span. offsets_of: in the operand.
// places_of: in a buffer that holds all levels.
std::vector<std::int32_t> offsets_of(const levels& loops, std::span<const int> numbers) {
    levels picked;
    for (const int i : numbers) picked.append(loops[i]);
    return offsets_of(picked);
}

std::vector<std::int32_t> places_of(const levels& loops, std::span<const int> numbers,
                                    std::int64_t width) {
    levels placed;
    for (const int i : numbers) placed.append({loops[i].extent, product(loops, 0, i) * width});
    return offsets_of(placed);
}

void lay_out_transpose(operand_access& access, const levels& loops, const transposition& t) {
    const std::int64_t width = access.layout.item_bytes;
    access.kind = access_kind::transpose;
    access.layout.even_items = t.items == 1;
    access.layout.offsets = offsets_of(loops, 0, t.items);
    access.layout.group_places = places_of(loops, t.groups, width);
    access.layout.block_offsets = offsets_of(loops, t.blocks);
    access.layout.block_places = places_of(loops, t.blocks, width);
    access.layout.items = static_cast<std::int64_t>(access.layout.offsets.size());
    access.layout.max_items = items_at_once(access.layout.offsets, native_caches());
    access.layout.groups = product(loops, t.groups);
    access.layout.blocks = static_cast<std::int64_t>(access.layout.block_offsets.size());
    access.layout.group_bytes = width;
    const bool is_even = t.groups.size() == 1;
    access.layout.buffer_group_bytes = is_even ? product(loops, 0, t.groups[0]) * width : 0;
}

// Lays out runs of adjacent elements, copies of one element (`splat`), or single elements.
void lay_out_moves(operand_access& access, const levels& loops, bool splat, bool run) {
    if (splat) access.kind = access_kind::splat;
    if (splat || run) access.layout.item_bytes *= loops[0].extent;
    lay_out_items(access, loops, splat || run ? 1 : 0);
}

void lay_out_windows(operand_access& access) {
    access.layout.windows = choose_windows(access.layout.offsets, access.layout.item_bytes);
    if (access.layout.windows.count == 0) return;
    const auto farthest = [](const std::vector<std::int32_t>& offsets) {
        return std::int64_t{*std::max_element(offsets.begin(), offsets.end())};
    };
    access.windows_reach =
        farthest(access.layout.windows.offsets) + window_bytes +
        std::max<std::int64_t>(0, (access.layout.groups - 1) * access.layout.group_bytes) +
        farthest(access.layout.block_offsets);
}

// Returns the access that packs an operand into a buffer. For dst, the access unpacks the buffer.
operand_access packed_access(levels loops, std::int64_t width, bool is_dst,
                             const kernel_table& kernels) {
    operand_access access;
    if (loops.count > 1 && loops[loops.count - 1].stride_bytes == 0)
        access.repeats = loops[--loops.count].extent;
    access.pattern_bytes = product(loops) * width;
    access.buffer_bytes = access.repeats * access.pattern_bytes + pack_slack_bytes;
    access.layout.block_offsets = {0};
    access.layout.item_bytes = width;
    access.kind = is_dst ? access_kind::scatter : access_kind::gather;
    const bool run = loops[0].stride_bytes == width, splat = loops[0].stride_bytes == 0;
    if (run && loops.count == 1) {
        access.kind = access_kind::repeat;
        return access;
    }
    // The transpose kernel also packs up to four copies of each element, as items with stride 0.
    transposition blocks;
    if (!is_dst && !run && (!splat || loops[0].extent <= 4))
        blocks = choose_transposition(loops, width);
    if (!blocks.groups.empty())
        lay_out_transpose(access, loops, blocks);
    else if (!is_dst && !run && !splat && suits_step_kernel(loops))
        lay_out_steps(access, loops);
    else
        lay_out_moves(access, loops, splat, run);
    if (access.kind == access_kind::gather) lay_out_windows(access);
    access.pack = find_pack(kernels, access, width);
    return access;
}

// Returns the tile's loops in which the operand's stride is not 0, in ascending order of stride.
levels moving_levels(const loop_nest& nest, const tile_extents& extents, std::size_t operand) {
    levels moving;
    for (const int d : nest.numbers()) {
        const level next = level_of(nest, extents, d, operand);
        if (next.extent > 1 && next.stride_bytes != 0) moving.append(next);
    }
    std::ranges::sort(moving, {}, &level::stride_bytes);
    return moving;
}

// Whether dst's order walks the operand's memory forward. Steps back within two lines count as
// forward.
bool walks_forward(const loop_nest& nest, const tile_extents& extents, std::size_t operand) {
    constexpr std::int64_t few_lines_bytes = 128;
    std::int64_t reached = 0;
    for (const int d : nest.numbers()) {
        const level next = level_of(nest, extents, d, operand);
        if (next.extent == 1 || next.stride_bytes == 0) continue;
        if (next.stride_bytes < reached && reached > few_lines_bytes) return false;
        reached = std::max(reached, (next.extent - 1) * next.stride_bytes);
    }
    return true;
}

// Whether hardware prefetchers predict the operand's next piece (a run of adjacent cache lines).
// `packed_alone`: no other operand is gathered, scattered, packed by steps or transposed.
bool is_predicted(const loop_nest& nest, const tile_extents& extents, std::size_t operand,
                  access_kind kind, bool packed_alone) {
    if (kind == access_kind::direct) return true;
    return kind == access_kind::transpose ? packed_alone : walks_forward(nest, extents, operand);
}

// A piece may begin within a cache line, so the piece's last byte may be in one more line.
std::vector<std::int32_t> a_byte_in_each_line(const std::vector<std::int32_t>& pieces,
                                              std::int64_t last_byte) {
    std::vector<std::int32_t> offsets;
    offsets.reserve(pieces.size() * static_cast<std::size_t>(last_byte / line_bytes + 2));
    for (const std::int32_t piece : pieces) {
        for (std::int64_t offset = 0; offset < last_byte; offset += line_bytes)
            offsets.push_back(piece + static_cast<std::int32_t>(offset));
        offsets.push_back(piece + static_cast<std::int32_t>(last_byte));
    }
    return offsets;
}

} // namespace

std::vector<std::int32_t> lines_of_tile(const loop_nest& nest, const tile_extents& extents,
                                        std::size_t operand, access_kind kind, bool packed_alone) {
    const levels moving = moving_levels(nest, extents, operand);
    // Negative strides are left to the hardware prefetchers.
    if (moving.count > 0 && moving[0].stride_bytes < 0) return {};
    // Levels whose steps skip no line form one dense piece; the other levels repeat the piece.
    std::int64_t last_byte = nest.width_bytes[operand] - 1;
    auto next = moving.begin();
    for (; next != moving.end() && next->stride_bytes <= last_byte + 1 + line_bytes; ++next)
        last_byte += (next->extent - 1) * next->stride_bytes;
    levels pieces;
    for (; next != moving.end(); ++next) pieces.append(*next);
    // Not prefetched: separate pieces whose lines hold fewer than eight elements on average.
    const std::int64_t lines = last_byte / line_bytes + 1;
    const std::int64_t all_lines = lines * product(pieces);
    if (pieces.count > 0
            ? all_lines > elements_of(extents) / 8
            : lines > most_lines || is_predicted(nest, extents, operand, kind, packed_alone))
        return {};
    return a_byte_in_each_line(offsets_of(pieces), last_byte);
}

std::vector<std::int32_t> column_offsets(const loop_nest& nest, const tiling& tile,
                                         const tile_extents& extents, std::size_t operand) {
    return offsets_of(columns_of(nest, tile, extents, operand));
}

operand_access make_access(const loop_nest& nest, const tiling& tile, const tile_extents& extents,
                           std::size_t operand, const kernel_table& kernels) {
    const std::int64_t width = nest.width_bytes[operand];
    levels loops = columns_of(nest, tile, extents, operand);
    const bool is_constant = loops.count == 1 && loops[0].stride_bytes == 0;
    const bool is_contiguous =
        loops.count == 0 || (loops.count == 1 && loops[0].stride_bytes == width);
    level rows{1, 0};
    if (tile.row_loop >= 0) rows = level_of(nest, extents, tile.row_loop, operand);
    if (is_constant || is_contiguous) {
        operand_access direct;
        direct.columns = is_constant ? column_class::zero : column_class::unit;
        direct.row_bytes = rows.stride_bytes;
        return direct;
    }
    const std::int64_t row_bytes = product(loops) * width;
    if (rows.stride_bytes != 0) loops.add(rows);
    operand_access packed = packed_access(loops, width, operand == op_dst, kernels);
    packed.row_bytes = rows.stride_bytes == 0 ? 0 : row_bytes;
    return packed;
}

} // namespace maskwise
