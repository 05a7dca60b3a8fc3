#include "plan/levels.hpp"

namespace maskwise {

std::int64_t product(const levels& from, int first, int last) {
    std::int64_t result = 1;
    for (int i = first; i < last; ++i) result *= from[i].extent;
    return result;
}

std::vector<std::int32_t> offsets_of(const levels& from, int first, int last) {
    std::vector<std::int32_t> offsets(static_cast<std::size_t>(product(from, first, last)));
    std::size_t filled = 1;
    offsets[0] = 0;
    for (int i = first; i < last; ++i) {
        const auto stride = static_cast<std::int32_t>(from[i].stride_bytes);
        const std::size_t end = filled * static_cast<std::size_t>(from[i].extent);
        for (std::size_t k = filled; k < end; ++k) offsets[k] = offsets[k - filled] + stride;
        filled = end;
    }
    return offsets;
}

} // namespace maskwise
