#include "tensor/broadcast.hpp"

#include "base/error.hpp"

namespace maskwise {
namespace {

// Extent of `shape` in dimension `d` of the `rank` dimensions it is aligned to.
std::int64_t aligned_extent(const dims& shape, int d, int rank) {
    const int own = d - (rank - shape.rank());
    return own < 0 ? 1 : shape[own];
}

void require_no_negative(const dims& shape) {
    for (const std::int64_t extent : shape)
        if (extent < 0) throw invalid_shape("negative extent in shape " + to_string(shape));
}

} // namespace

dims broadcast_numpy(const dims& a, const dims& b) {
    require_no_negative(a);
    require_no_negative(b);
    const int rank = std::max(a.rank(), b.rank());
    dims result(rank, 1);
    for (int d = 0; d < rank; ++d) {
        const std::int64_t extent_a = aligned_extent(a, d, rank);
        const std::int64_t extent_b = aligned_extent(b, d, rank);
        if (extent_a != extent_b && extent_a != 1 && extent_b != 1)
            throw invalid_shape("shapes " + to_string(a) + " and " + to_string(b) +
                                " do not broadcast to each other");
        result[d] = extent_a == 1 ? extent_b : extent_a;
    }
    return result;
}

void require_one_way(const dims& from, const dims& to, std::string_view what) {
    require_no_negative(from);
    require_no_negative(to);
    const auto fail = [&] {
        throw invalid_shape(std::string(what) + " of shape " + to_string(from) +
                            " does not broadcast to " + to_string(to));
    };
    if (from.rank() > to.rank()) fail();
    for (int d = 0; d < to.rank(); ++d) {
        const std::int64_t extent = aligned_extent(from, d, to.rank());
        if (extent != 1 && extent != to[d]) fail();
    }
}

} // namespace maskwise
