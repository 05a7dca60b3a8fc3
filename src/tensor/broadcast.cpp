#include "tensor/broadcast.hpp"

namespace maskwise {
namespace {

// Extent of `shape` in dimension `d` of the `rank` dimensions it is aligned to.
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

bool broadcasts_one_way(const dims& from, const dims& to) {
    if (from.rank() > to.rank()) return false;
    for (int d = 0; d < to.rank(); ++d) {
        const std::int64_t extent = aligned_extent(from, d, to.rank());
        if (to[d] < 0 || (extent != 1 && extent != to[d])) return false;
    }
    return true;
}

void require_one_way(const dims& from, const dims& to, std::string_view what) {
    if (!broadcasts_one_way(from, to))
        throw shape_error(std::string(what) + " of shape " + to_string(from) +
                          " does not broadcast to " + to_string(to));
}

dims broadcast_strides(const tensor_desc& from, const dims& to) {
    dims strides = dims::filled(to.rank(), 0);
    for (int d = 0; d < to.rank(); ++d) strides[d] = aligned_stride(from, d, to.rank());
    return strides;
}

} // namespace maskwise
