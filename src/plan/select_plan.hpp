#pragma once

#include "plan/access.hpp"
#include "plan/tiling.hpp"
#include "tensor/tensor_desc.hpp"

#include <memory>
#include <string>

namespace maskwise {

// Upper bound on a thread's scratch, which is on the stack.
inline constexpr std::int64_t max_scratch_bytes = 160 << 10;

// One loop over tiles. The extent counts tiles, and the strides are from tile to tile.
struct grid_loop : loop_dim {
    std::int64_t elements = 1;
    std::size_t last_shape = 0; // the last tile adds this to its index into select_plan::shapes
};

// Tiles of one size: the select kernel's rows and columns, and its access to each operand.
struct tile_shape {
    std::int64_t rows = 1;
    std::int64_t columns = 1;
    per_operand<operand_access> access;
    // Offsets for pick_fn, which runs if a tile selects from both sources; empty if packing is
    // faster.
    std::vector<std::int32_t> pick_offsets;
};

// A compiled Select: every decision that does not depend on data. src/exec walks the grid and calls
// the kernels. Immutable: any number of threads may run one plan. A plan of strings has no tiles
// and no kernels.
class select_plan {
public:
    select_desc desc;
    loop_nest nest;
    isa target = isa::scalar;
    tiling tile;

    // Loops over tiles, innermost first, without loops of one tile. `tiles` is the product of their
    // extents, 0 if dst is empty.
    std::vector<grid_loop> grid;
    std::int64_t tiles = 0;

    // The full tile's shape is first. Tail tiles follow: one shape for each nonempty subset of the
    // loops that the tile does not divide.
    std::vector<tile_shape> shapes;
    per_operand<std::int64_t> buffer_offset{};
    std::int64_t scratch_bytes = 0;          // all buffers together
    per_operand<std::int64_t> windows_end{}; // windows must not read past this byte
    bool packs = false;                      // some operand is not direct

    select_key key{};
    select_fn run_plain = nullptr; // with plain stores: for a dst that is also a source
    select_fn run = nullptr;
    pick_fn pick = nullptr;       // only if shapes have pick_offsets
    std::int64_t moved_bytes = 0; // of dst and the inputs that are read, each byte once
};

// Builds a plan; ignores the cache and the environment.
std::shared_ptr<const select_plan> build_plan(const select_desc& desc, isa target,
                                              std::int64_t stream_from_bytes);

// Returns the plan for `desc`, cached or new. `desc` has dst and all strides. Thread-safe. cond has
// one byte per element. src_0, src_1 and dst have equal widths (1, 2, 4, 8 or 16 bytes) or are
// strings. Throws shape_error if an input does not broadcast one-way to dst or byte counts
// overflow. Throws argument_error if widths differ, an operand lacks strides, strings are not
// aligned, or elements of dst may overlap (see dst_overlaps in plan/collapse.hpp). Throws as
// active_isa() and stream_threshold_bytes() do.
std::shared_ptr<const select_plan> make_select_plan(const select_desc& desc);

// Returns the plan that copies elements from one layout to another: a Select that always selects
// src_0.
std::shared_ptr<const select_plan> make_copy_plan(const tensor_desc& src, const tensor_desc& dst);

// Returns one line: loops, tile, loop order, access of each operand, kernel, instruction set.
std::string to_string(const select_plan& plan);

} // namespace maskwise
