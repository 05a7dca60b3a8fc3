#include "tensor/broadcast.hpp"

namespace maskwise {
namespace {

// Extent of `shape` in dimension `d` of the `rank` dimensions that it is aligned to.
std::int64_t aligned_extent(const dims& shape, int d, int rank) {
    const int dimension = d - (rank - shape.rank());
    return dimension < 0 ? 1 : shape[dimension];
}

} // namespace

std::optional<dims> broadcast_numpy(const dims& a, const dims& b) {
    const int rank = std::max(a.rank(), b.rank());
    dims result = dims::filled(rank, 1);
    for (int d = 0; d < rank; ++d) {
        const std::int64_t extent_a = aligned_extent(a, d, rank);
        const std::int64_t extent_b = aligned_extent(b, d, rank);
        if (extent_a != extent_b && extent_a != 1 && extent_b != 1) return std::nullopt;
        if (extent_a < 0 || extent_b < 0) return std::nullopt;
        result[d] = extent_a == 1 ? extent_b : extent_a;
    }
    return result;
}

bool broadcasts_one_way(const dims& shape, const dims& target) {
    if (shape.rank() > target.rank()) return false;
    for (int d = 0; d < target.rank(); ++d) {
        const std::int64_t extent = aligned_extent(shape, d, target.rank());
        if (target[d] < 0 || (extent != 1 && extent != target[d])) return false;
    }
    return true;
}

void require_one_way(const dims& shape, const dims& target, std::string_view operand_name) {
    if (!broadcasts_one_way(shape, target))
        throw shape_error(std::string(operand_name) + " of shape " + to_string(shape) +
                          " does not broadcast to " + to_string(target));
}

dims broadcast_strides(const tensor_desc& tensor, const dims& target) {
    dims strides = dims::filled(target.rank(), 0);
    for (int d = 0; d < target.rank(); ++d) strides[d] = aligned_stride(tensor, d, target.rank());
    return strides;
}

} // namespace maskwise
