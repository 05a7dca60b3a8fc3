#pragma once

#include "kernel/kernel_table.hpp"
#include "plan/tiling.hpp"

#include <vector>

namespace maskwise {

// direct: the kernel reads (or writes) the operand where it lies. repeat: a short pattern that lies
// once in memory fills the tile. The others are packed by the kernel of that name.
enum class access_kind : std::uint8_t { direct, repeat, gather, scatter, splat, transpose };

// How one operand reaches the kernel. A tile of `rows` rows whose column loop holds `chunk`
// elements has, where the operand is packed,
//   items_per_step * (items_follow_chunk ? chunk : 1) items and
//   (groups_follow_chunk ? chunk : rows) groups.
struct operand_access {
    access_kind kind = access_kind::direct;
    column_class columns = column_class::unit;
    bool items_follow_chunk = false;
    bool groups_follow_chunk = false;
    std::int64_t row_bytes = 0; // between rows, as the select kernel sees it
    std::int64_t items_per_step = 0;
    std::int64_t item_bytes = 0;
    std::int64_t item_stride_bytes = 0;
    std::int64_t group_bytes = 0;
    std::int64_t buffer_group_bytes = 0;
    std::int64_t buffer_bytes = 0; // with slack; 0 where direct
    std::vector<std::int32_t> offsets;
    pack_fn pack = nullptr;
};

operand_access make_access(const loop_nest& nest, const tiling& tile, std::size_t operand,
                           const kernel_table& kernels);

} // namespace maskwise
