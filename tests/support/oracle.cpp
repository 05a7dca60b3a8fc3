#include "support/oracle.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>

namespace maskwise::test {

view dense_view(const void* data, const std::vector<std::int64_t>& extents,
                std::int64_t width_bytes) {
    view result{static_cast<std::byte*>(const_cast<void*>(data)), extents, extents};
    for (std::size_t d = extents.size(); d-- > 0;) {
        result.strides_bytes[d] = width_bytes;
        width_bytes *= std::max<std::int64_t>(extents[d], 1);
    }
    return result;
}

std::int64_t offset_bytes(const view& operand, std::span<const std::int64_t> index) {
    std::int64_t offset = 0;
    const std::size_t missing = index.size() - operand.extents.size();
    for (std::size_t d = 0; d < operand.extents.size(); ++d)
        if (operand.extents[d] != 1) offset += operand.strides_bytes[d] * index[d + missing];
    return offset;
}

bool advance(std::vector<std::int64_t>& index, std::span<const std::int64_t> extents) {
    for (std::size_t d = extents.size(); d-- > 0;) {
        if (++index[d] < extents[d]) return true;
        index[d] = 0;
    }
    return false;
}

std::int64_t bytes_below(const view& operand) {
    std::int64_t below = 0;
    for (std::size_t d = 0; d < operand.extents.size(); ++d)
        if (operand.extents[d] > 1 && operand.strides_bytes[d] < 0)
            below += (operand.extents[d] - 1) * -operand.strides_bytes[d];
    return below;
}

std::int64_t span_bytes(const view& operand, std::int64_t width_bytes) {
    std::int64_t span = width_bytes;
    for (std::size_t d = 0; d < operand.extents.size(); ++d) {
        if (operand.extents[d] == 0) return 0;
        span += (operand.extents[d] - 1) * std::abs(operand.strides_bytes[d]);
    }
    return span;
}

std::int64_t count_of(std::span<const std::int64_t> extents) {
    return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

extent_list broadcast_strides(const extent_list& extents, const extent_list& strides,
                              const extent_list& target) {
    extent_list steps(target.size(), 0);
    for (std::size_t back = 1; back <= extents.size(); ++back)
        if (extents.end()[-static_cast<std::ptrdiff_t>(back)] != 1)
            steps.end()[-static_cast<std::ptrdiff_t>(back)] =
                strides.end()[-static_cast<std::ptrdiff_t>(back)];
    return steps;
}

std::optional<extent_list> broadcast(std::initializer_list<extent_list> shapes) {
    std::size_t rank = 0;
    for (const extent_list& shape : shapes) rank = std::max(rank, shape.size());
    extent_list joined(rank, 1);
    for (const extent_list& shape : shapes)
        for (std::size_t back = 1; back <= shape.size(); ++back) {
            const std::int64_t extent = shape[shape.size() - back];
            std::int64_t& known = joined[rank - back];
            if (extent != 1 && known != 1 && extent != known) return std::nullopt;
            if (extent != 1) known = extent;
        }
    return joined;
}

std::optional<extent_list> select_shape(const extent_list& cond, const extent_list& src_0,
                                        const extent_list& src_1, bool cond_expands) {
    const auto sources = broadcast({src_0, src_1});
    const auto joined = sources ? broadcast({cond, *sources}) : std::nullopt;
    return cond_expands || joined == sources ? joined : std::nullopt;
}

void select_reference(const view& cond, const view& src_0, const view& src_1, const view& dst,
                      std::int64_t width_bytes) {
    const auto steps = [&](const view& operand) {
        return broadcast_strides(operand.extents, operand.strides_bytes, dst.extents);
    };
    walk<4>(dst.extents, {steps(cond), steps(src_0), steps(src_1), steps(dst)},
            [&](const auto& offsets) {
                const std::byte* const chosen = cond.data[offsets[0]] != std::byte{0}
                                                    ? src_0.data + offsets[1]
                                                    : src_1.data + offsets[2];
                std::memmove(dst.data + offsets[3], chosen, static_cast<std::size_t>(width_bytes));
            });
}

} // namespace maskwise::test
