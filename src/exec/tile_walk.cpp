#include "exec/tile_walk.hpp"

#include "exec/odometer.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace maskwise {
namespace {

// One tile: its address in each operand, and its shape.
struct tile_place {
    per_operand<std::byte*> pointers;
    const tile_shape* shape;
};

using tile_cursor = odometer<grid_loop>;

tile_place place_of(const select_plan& plan, const tile_cursor& cursor) {
    std::size_t shape = 0;
    for (std::size_t i = 0; i < plan.grid.size(); ++i)
        if (cursor.is_last(i)) shape += plan.grid[i].last_shape;
    return {cursor.pointers(), &plan.shapes[shape]};
}

void run_direct_tiles(const select_plan& plan, select_fn kernel, tile_cursor& cursor,
                      std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        if (i > 0) cursor.advance();
        const tile_place place = place_of(plan, cursor);
        kernel(make_tile(*place.shape, place.pointers));
    }
}

void repeat(std::byte* buffer, std::int64_t pattern_bytes, std::int64_t repeats) {
    const std::int64_t bytes = pattern_bytes * repeats;
    for (std::int64_t filled = pattern_bytes; filled < bytes; filled *= 2)
        std::memcpy(buffer + filled, buffer,
                    static_cast<std::size_t>(std::min(filled, bytes - filled)));
}

void prefetch(const lines_ahead& lines) {
    for (const std::int32_t line : lines.offsets) __builtin_prefetch(lines.base + line, 0, 2);
}

// One thread's buffers for packed operands.
class packer {
public:
    packer(const select_plan& plan, const per_operand<std::byte*>& begin, std::byte* scratch)
        : plan_(plan), begin_(begin), scratch_(scratch) {}

    std::byte* buffer(std::size_t operand) const { return scratch_ + plan_.buffer_offset[operand]; }

    // Returns the operand's part of the tile: in place, or packed into a buffer.
    std::byte* read(std::size_t operand, const operand_access& access, std::byte* src,
                    const lines_ahead& next) {
        packed& buffered = packed_[operand];
        const bool is_buffered = buffered.src == src && buffered.access == &access;
        if (access.kind == access_kind::direct || is_buffered) {
            pending_[operand] = next;
            return is_buffered ? buffer(operand) : src;
        }
        buffered = {src, &access};
        if (access.kind == access_kind::repeat)
            std::memcpy(buffer(operand), src, static_cast<std::size_t>(access.pattern_bytes));
        else
            access.pack(describe(operand, access, src, next));
        repeat(buffer(operand), access.pattern_bytes, access.repeats);
        return buffer(operand);
    }

    // Returns a readable address for an operand whose elements the kernel does not select.
    std::byte* unread(std::size_t operand, const operand_access& access, std::byte* src) const {
        return access.kind == access_kind::direct ? src : buffer(operand);
    }

    void write(const operand_access& access, std::byte* dst, const lines_ahead& next) const {
        access.pack(describe(op_dst, access, dst, next));
    }

    // Returns the lines of the next tile that packing has not prefetched.
    per_operand<lines_ahead> take_pending() { return std::exchange(pending_, {}); }

private:
    struct packed {
        const std::byte* src = nullptr;
        const operand_access* access = nullptr;
    };

    pack_tile describe(std::size_t operand, const operand_access& access, std::byte* strided,
                       const lines_ahead& next) const {
        // Windows (see byte_windows) may read past the tile's elements, but not past windows_end. 0
        // forbids windows; the comparison alone would allow windows if strides are negative.
        const std::int64_t end = plan_.windows_end[operand];
        const bool windows = end != 0 && strided - begin_[operand] + access.windows_reach <= end;
        return {strided, buffer(operand), access.layout, windows, next};
    }

    const select_plan& plan_;
    per_operand<std::byte*> begin_;
    std::byte* scratch_;
    per_operand<packed> packed_{};
    per_operand<lines_ahead> pending_{};
};

// Whether all cond bytes of the tile are equal, so that only one source is packed. Different
// nonzero bytes count as mixed, which only costs packing both sources.
bool is_uniform(const tile_shape& shape, const std::byte* cond) {
    const operand_access& access = shape.access[op_cond];
    const bool moves = access.columns == column_class::unit;
    const std::int64_t rows = access.row_bytes == 0 ? 1 : shape.rows;
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::byte* const row = cond + r * access.row_bytes;
        if (*row != *cond) return false;
        if (moves && std::memcmp(row, row + 1, static_cast<std::size_t>(shape.columns - 1)) != 0)
            return false;
    }
    return true;
}

// Runs the tile in slices of rows, and prefetches some lines of the next tile before each slice.
// Prefetching all lines at once would delay the tile's loads.
void run_and_prefetch(select_fn kernel, select_tile tile, const per_operand<lines_ahead>& next) {
    constexpr std::int64_t most_slices = 16;
    constexpr std::size_t few_lines = 32;
    std::size_t lines = 0;
    for (const lines_ahead& each : next) lines += each.offsets.size();
    const std::int64_t rows = tile.rows;
    const std::int64_t least = (rows + most_slices - 1) / most_slices;
    const std::int64_t step = lines < few_lines ? rows : least; // mutate.py: skip
    const auto slices = static_cast<std::size_t>((rows + step - 1) / step);
    for (std::size_t i = 0; i < slices; ++i) {
        for (const auto& [base, offsets] : next) {
            const std::size_t first = offsets.size() * i / slices;
            prefetch({base, offsets.subspan(first, offsets.size() * (i + 1) / slices - first)});
        }
        tile.rows = std::min(step, rows - static_cast<std::int64_t>(i) * step);
        kernel(tile);
        tile.cond += step * tile.cond_row_bytes;
        tile.src_0 += step * tile.src_0_row_bytes;
        tile.src_1 += step * tile.src_1_row_bytes;
        tile.dst += step * tile.dst_row_bytes;
    }
}

// Picks each element from its source, without packing.
void pick_tile(const select_plan& plan, const tile_shape& shape,
               const per_operand<std::byte*>& pointers) {
    select_tile tile = make_tile(shape, pointers);
    if (const int rows = plan.tile.row_loop; rows >= 0) {
        tile.src_0_row_bytes = plan.nest[rows].stride_bytes[op_src_0];
        tile.src_1_row_bytes = plan.nest[rows].stride_bytes[op_src_1];
    }
    plan.pick(tile, shape.pick_offsets.data());
}

// Returns lines of the next tile to prefetch while this tile is packed. Without the prefetch,
// memory would be idle during packing: the contiguous runs of a strided operand are too short for
// the hardware's prefetchers.
lines_ahead ahead_of(std::size_t o, const tile_place& place, const tile_place& next) {
    const std::ptrdiff_t step = next.pointers[o] - place.pointers[o];
    // The next tile has mostly the same lines as this tile.
    if (step > -line_bytes / 4 && step < line_bytes / 4) return {}; // mutate.py: skip
    return {next.pointers[o], next.shape->access[o].lines};
}

void read_sources(const tile_place& place, const tile_place& next, bool uniform, packer& pack,
                  per_operand<std::byte*>& pointers) {
    const operand other = *pointers[op_cond] == std::byte{0} ? op_src_0 : op_src_1;
    for (const std::size_t o : {op_src_0, op_src_1}) {
        const operand_access& access = place.shape->access[o];
        if (uniform && o == other) {
            prefetch(ahead_of(o, place, next));
            pointers[o] = pack.unread(o, access, pointers[o]);
        } else {
            pointers[o] = pack.read(o, access, pointers[o], ahead_of(o, place, next));
        }
    }
}

void run_packed_tile(const select_plan& plan, select_fn kernel, const tile_place& place,
                     const tile_place& next, packer& pack) {
    const auto& access = place.shape->access;
    const bool scatters = access[op_dst].kind != access_kind::direct;
    per_operand<std::byte*> pointers = place.pointers;
    pointers[op_cond] =
        pack.read(op_cond, access[op_cond], pointers[op_cond], ahead_of(op_cond, place, next));
    if (scatters) pointers[op_dst] = pack.buffer(op_dst);
    const bool uniform = is_uniform(*place.shape, pointers[op_cond]);
    if (!uniform && plan.pick != nullptr) {
        for (const lines_ahead& lines : pack.take_pending()) prefetch(lines);
        pick_tile(plan, *place.shape, pointers);
    } else {
        read_sources(place, next, uniform, pack, pointers);
        run_and_prefetch(kernel, make_tile(*place.shape, pointers), pack.take_pending());
    }
    if (scatters) pack.write(access[op_dst], place.pointers[op_dst], ahead_of(op_dst, place, next));
}

void run_packed_tiles(const select_plan& plan, select_fn kernel,
                      const per_operand<std::byte*>& begin, tile_cursor& cursor,
                      std::int64_t count) {
    // Allocates no more stack than this plan needs, because callers' threads may have small stacks.
    constexpr std::size_t alignment_bits = 512;
    void* const scratch =
        __builtin_alloca_with_align(static_cast<std::size_t>(plan.scratch_bytes), alignment_bits);
    packer pack(plan, begin, static_cast<std::byte*>(scratch));
    tile_place place = place_of(plan, cursor);
    for (std::int64_t i = 0; i < count; ++i) {
        cursor.advance(); // wraps around after the last tile of the plan
        const tile_place next = place_of(plan, cursor);
        run_packed_tile(plan, kernel, place, next, pack);
        place = next;
    }
}

} // namespace

void run_tiles(const select_plan& plan, select_fn kernel, const operand_pointers& pointers,
               std::int64_t first, std::int64_t last) {
    const per_operand<std::byte*> begin = loops_begin(plan, pointers);
    tile_cursor cursor(plan.grid, begin, first);
    if (plan.packs)
        run_packed_tiles(plan, kernel, begin, cursor, last - first);
    else
        run_direct_tiles(plan, kernel, cursor, last - first);
}

} // namespace maskwise
