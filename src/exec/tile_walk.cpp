#include "exec/tile_walk.hpp"

#include <algorithm>
#include <cstring>

namespace maskwise {
namespace {

// Where in the grid a thread is, and what that means for each operand. Divides once, at its start;
// then counts like an odometer.
class tile_cursor {
public:
    tile_cursor(const select_plan& plan, const operand_pointers& pointers, std::int64_t tile)
        : plan_(&plan), at_{const_cast<std::byte*>(pointers.cond),
                            const_cast<std::byte*>(pointers.src_0),
                            const_cast<std::byte*>(pointers.src_1), pointers.dst} {
        for (std::size_t o = 0; o < operand_count; ++o) at_[o] += plan.nest.first_bytes[o];
        for (int i = plan.grid_rank - 1; i >= 0; --i) {
            const std::int64_t index = tile % loop(i).count;
            tile /= loop(i).count;
            index_[static_cast<std::size_t>(i)] = index;
            move(i, index);
        }
    }

    void advance() {
        for (int i = plan_->grid_rank - 1; i >= 0; --i) {
            std::int64_t& index = index_[static_cast<std::size_t>(i)];
            if (++index < loop(i).count) {
                move(i, 1);
                return;
            }
            move(i, 1 - index);
            index = 0;
        }
    }

    std::byte* at(std::size_t operand) const { return at_[operand]; }
    std::int64_t rows() const { return part(plan_->row_grid, plan_->rows); }
    std::int64_t chunk() const { return part(plan_->column_grid, plan_->chunk); }

private:
    const grid_loop& loop(int i) const { return plan_->grid[static_cast<std::size_t>(i)]; }

    void move(int i, std::int64_t steps) {
        for (std::size_t o = 0; o < operand_count; ++o) at_[o] += loop(i).step_bytes[o] * steps;
    }

    std::int64_t part(int i, std::int64_t whole) const {
        if (i < 0) return whole;
        return std::min(whole, loop(i).extent - index_[static_cast<std::size_t>(i)] * whole);
    }

    const select_plan* plan_;
    per_operand<std::byte*> at_;
    std::array<std::int64_t, max_rank> index_{};
};

select_tile make_tile(const select_plan& plan, const per_operand<std::byte*>& at, std::int64_t rows,
                      std::int64_t columns) {
    const auto& access = plan.access;
    return {at[op_cond],
            at[op_src_0],
            at[op_src_1],
            at[op_dst],
            rows,
            columns,
            access[op_cond].row_bytes,
            access[op_src_0].row_bytes,
            access[op_src_1].row_bytes,
            access[op_dst].row_bytes};
}

void run_direct_tiles(const select_plan& plan, select_fn kernel, tile_cursor cursor,
                      std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        if (i > 0) cursor.advance();
        kernel(make_tile(
            plan, {cursor.at(op_cond), cursor.at(op_src_0), cursor.at(op_src_1), cursor.at(op_dst)},
            cursor.rows(), cursor.chunk() * plan.columns_per_chunk));
    }
}

void repeat_pattern(std::byte* to, const std::byte* pattern, std::int64_t pattern_bytes,
                    std::int64_t bytes) {
    std::memcpy(to, pattern, static_cast<std::size_t>(std::min(pattern_bytes, bytes)));
    for (std::int64_t filled = pattern_bytes; filled < bytes; filled *= 2)
        std::memcpy(to + filled, to, static_cast<std::size_t>(std::min(filled, bytes - filled)));
}

// The buffers of one thread for the operands that are packed.
class packer {
public:
    packer(const select_plan& plan, std::byte* scratch) : plan_(plan), scratch_(scratch) {}

    std::byte* buffer(std::size_t operand) const { return scratch_ + plan_.buffer_offset[operand]; }

    // Asks for the operand's part of the next tile: while this one is packed memory would be idle,
    // and the pieces of a scattered operand are too short for the hardware's prefetchers.
    void ask_ahead(std::size_t operand, const std::byte* from, const std::byte* next) const {
        if (next - from < 64 && from - next < 64) return; // mostly the same lines
        for (const std::int32_t line : plan_.access[operand].lines) __builtin_prefetch(next + line);
    }

    // The operand's part of the tile as the select kernel can read it.
    std::byte* read(std::size_t operand, std::byte* from, std::int64_t rows, std::int64_t chunk) {
        const operand_access& access = plan_.access[operand];
        if (access.kind == access_kind::direct) return from;
        packed& have = packed_[operand];
        if (have.from == from && rows <= have.rows && chunk <= have.chunk) return buffer(operand);
        have = {from, rows, chunk};
        const pack_tile tile = describe(access, from, buffer(operand), rows, chunk);
        if (access.kind == access_kind::repeat)
            repeat_pattern(tile.buffer, from, tile.item_bytes, tile.item_bytes * tile.items);
        else
            access.pack(tile);
        return buffer(operand);
    }

    void write(std::byte* to, std::int64_t rows, std::int64_t chunk) const {
        const operand_access& access = plan_.access[op_dst];
        access.pack(describe(access, to, buffer(op_dst), rows, chunk));
    }

private:
    struct packed {
        const std::byte* from = nullptr;
        std::int64_t rows = 0;
        std::int64_t chunk = 0;
    };

    // A whole tile's counts, cut to `rows` and `chunk`. The part of a tile that the last chunk of
    // the column loop holds is a whole number of items, groups or blocks.
    pack_tile describe(const operand_access& access, std::byte* strided, std::byte* buffer,
                       std::int64_t rows, std::int64_t chunk) const {
        pack_tile tile{strided,
                       buffer,
                       access.offsets.data(),
                       access.items,
                       plan_.tile.form == tile_form::rows ? rows : access.groups,
                       access.group_bytes,
                       access.buffer_group_bytes,
                       access.item_bytes,
                       access.blocks,
                       access.block_offsets.data(),
                       access.even_items};
        if (chunk == plan_.chunk) return tile;
        std::int64_t& count = access.follower == follows_chunk::items    ? tile.items
                              : access.follower == follows_chunk::groups ? tile.groups
                                                                         : tile.blocks;
        count = count / plan_.chunk * chunk;
        return tile;
    }

    const select_plan& plan_;
    std::byte* scratch_;
    per_operand<packed> packed_{};
};

void run_packed_tile(const select_plan& plan, select_fn kernel, const tile_cursor& cursor,
                     const tile_cursor& next, packer& pack) {
    const std::int64_t rows = cursor.rows(), chunk = cursor.chunk();
    const bool scatters = plan.access[op_dst].kind != access_kind::direct;
    per_operand<std::byte*> at{cursor.at(op_cond), cursor.at(op_src_0), cursor.at(op_src_1),
                               cursor.at(op_dst)};
    for (const std::size_t o : {op_cond, op_src_0, op_src_1}) pack.ask_ahead(o, at[o], next.at(o));
    at[op_cond] = pack.read(op_cond, at[op_cond], rows, chunk);
    const bool decided = plan.cond_is_constant, decision = *at[op_cond] != std::byte{0};
    if (!decided || decision) at[op_src_0] = pack.read(op_src_0, at[op_src_0], rows, chunk);
    if (!decided || !decision) at[op_src_1] = pack.read(op_src_1, at[op_src_1], rows, chunk);
    if (scatters) at[op_dst] = pack.buffer(op_dst);
    kernel(make_tile(plan, at, rows, chunk * plan.columns_per_chunk));
    if (scatters) pack.write(cursor.at(op_dst), rows, chunk);
}

void run_packed_tiles(const select_plan& plan, select_fn kernel, tile_cursor cursor,
                      std::int64_t count) {
    alignas(64) std::byte scratch[max_scratch_bytes];
    packer pack(plan, scratch);
    tile_cursor next = cursor;
    for (std::int64_t i = 0; i < count; ++i) {
        cursor = next;
        if (i + 1 < count) next.advance();
        run_packed_tile(plan, kernel, cursor, next, pack);
    }
}

} // namespace

void run_tiles(const select_plan& plan, select_fn kernel, const operand_pointers& pointers,
               std::int64_t first, std::int64_t last) {
    const tile_cursor start(plan, pointers, first);
    if (plan.packs)
        run_packed_tiles(plan, kernel, start, last - first);
    else
        run_direct_tiles(plan, kernel, start, last - first);
}

} // namespace maskwise
