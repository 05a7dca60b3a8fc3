#include "fusion/sum_heads.hpp"

#include "exec/parts.hpp"
#include "plan/row_plan.hpp"
#include "tensor/position.hpp"

#include <algorithm>
#include <cstdint>

namespace maskwise::fusion {
namespace {

constexpr std::int64_t columns_at_once = 256;
using row_buffer = float[columns_at_once + row_block_elems];

} // namespace

void sum_heads(const attention_kernels& kernels, const tensor_desc& heads, const std::byte* src,
               const tensor_desc& sums, std::byte* dst) {
    const int rank = sums.extents.rank();
    const std::int64_t group = heads.extents[rank - 3], keys = heads.extents[rank - 2];
    const std::int64_t columns = heads.extents[rank - 1];
    const std::int64_t width = heads.strides_bytes[rank - 1];
    const std::int64_t head_bytes = keys * columns * width;
    const dims rows = without_last(sums.extents, 1);
    const auto load = [&](const std::byte* row, std::int64_t count, float* to) {
        kernels.load_rows({const_cast<std::byte*>(row), elem_type_of(heads.type), 0, width}, 1,
                          count, to);
    };
    const auto sum_row = [&](std::int64_t row) {
        const std::byte* first =
            src + row / keys * group * head_bytes + row % keys * columns * width;
        std::byte* const to = dst + offset_of(shape_position(row, rows), sums.strides_bytes);
        for (std::int64_t c = 0; c < columns; c += columns_at_once) {
            row_buffer sum, more;
            const std::int64_t count = std::min(columns - c, columns_at_once);
            load(first + c * width, count, sum);
            for (std::int64_t head = 1; head < group; ++head) {
                load(first + head * head_bytes + c * width, count, more);
                for (std::int64_t i = 0; i < count; ++i) sum[i] += more[i];
            }
            const std::int64_t step = sums.strides_bytes[rank - 1];
            kernels.store_rows(sum, 1, count, {to + c * step, elem_type_of(sums.type), 0, step});
        }
    };
    const std::int64_t count = element_count(rows);
    run_tiles_in_parts(count,
                       choose_parts(count * columns * group, parallel_from_row_elements, count),
                       [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t row = begin; row < end; ++row) sum_row(row);
                       });
}

} // namespace maskwise::fusion
