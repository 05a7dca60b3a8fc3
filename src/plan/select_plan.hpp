#pragma once

#include "plan/access.hpp"
#include "plan/tiling.hpp"
#include "tensor/tensor_desc.hpp"

#include <memory>
#include <string>

namespace maskwise {

// Upper bound on one thread's run-time scratch, which is on the stack.
inline constexpr std::int64_t max_scratch_bytes = 160 << 10;

// One loop over tiles: extent counts them, strides are from one to the next.
struct grid_loop : loop_dim {
    std::int64_t elements = 1;
    std::size_t last_shape = 0; // at its last tile, to add to the index of select_plan::shapes
};

// Tiles of one size: rows and columns as the select kernel sees them, and how operands reach it.
struct tile_shape {
    std::int64_t rows = 1;
    std::int64_t columns = 1;
    per_operand<operand_access> access;
    // For pick_fn, which runs if a tile selects from both sources; empty if packing is faster.
    std::vector<std::int32_t> pick_offsets;
};

// A compiled Select: everything decided before data is seen. src/exec walks the grid and calls the
// kernels. Immutable: any number of threads may run one plan. A plan of strings is its nest; the
// rest is empty.
class select_plan {
public:
    select_desc desc;
    loop_nest nest;
    isa target = isa::scalar;
    tiling tile;

    // Loops over tiles, innermost first, those of one tile left out. tiles is their product, 0
    // where dst is empty.
    std::vector<grid_loop> grid;
    std::int64_t tiles = 0;

    // The whole tile first, then the smaller ones at the ends of loops that tiles do not divide:
    // one for each set of such loops.
    std::vector<tile_shape> shapes;
    per_operand<std::int64_t> buffer_offset{};
    std::int64_t scratch_bytes = 0;          // that buffers take together
    per_operand<std::int64_t> windows_end{}; // see the function
    bool packs = false;                      // some operand is not direct

    select_key key{};
    select_fn run_plain = nullptr; // key with plain stores: for dst that is read as a source
    select_fn run = nullptr;
    pick_fn pick = nullptr;       // where the shapes have pick_offsets
    std::int64_t moved_bytes = 0; // dst and what is read of the sources, each byte at most once
};

// Builds a plan without looking at the cache or the environment.
std::shared_ptr<const select_plan> build_plan(const select_desc& desc, isa target,
                                              std::int64_t stream_from_bytes);

// The plan for `desc`, with dst and all strides in it, from the cache where it is known. Any
// thread. cond has one byte an element, src_0, src_1 and dst one common width of 1, 2, 4, 8 or 16
// bytes; or all three are strings. Throws shape_error if an input does not broadcast one-way to dst
// or byte counts overflow. Throws argument_error if widths differ
// or elements of dst overlap (a stride of 0, or smaller than the span of the dimensions inside it),
// and as active_isa() does.
std::shared_ptr<const select_plan> make_select_plan(const select_desc& desc);

// The plan that copies elements from one layout to another: a Select that always takes src_0.
std::shared_ptr<const select_plan> make_copy_plan(const tensor_desc& from, const tensor_desc& to);

// One line: shape classes, tile, packing, loop order, kernel, stores.
std::string to_string(const select_plan& plan);

} // namespace maskwise
