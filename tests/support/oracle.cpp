#include "support/oracle.hpp"

#include <cstdlib>
#include <cstring>

namespace maskwise::test {
namespace {

const std::byte* element(const view& operand, const std::vector<std::int64_t>& index) {
    const std::byte* at = operand.data;
    const std::size_t missing = index.size() - operand.extents.size();
    for (std::size_t d = 0; d < operand.extents.size(); ++d)
        if (operand.extents[d] != 1) at += operand.strides_bytes[d] * index[d + missing];
    return at;
}

bool advance(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& extents) {
    for (std::size_t d = extents.size(); d-- > 0;) {
        if (++index[d] < extents[d]) return true;
        index[d] = 0;
    }
    return false;
}

} // namespace

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

void select_reference(const view& cond, const view& src_0, const view& src_1, const view& dst,
                      std::int64_t width_bytes) {
    if (span_bytes(dst, width_bytes) == 0) return;
    const auto width = static_cast<std::size_t>(width_bytes);
    std::vector<std::int64_t> index(dst.extents.size(), 0);
    do {
        const bool taken = *element(cond, index) != std::byte{0};
        const std::byte* from = element(taken ? src_0 : src_1, index);
        std::memmove(const_cast<std::byte*>(element(dst, index)), from, width);
    } while (advance(index, dst.extents));
}

} // namespace maskwise::test
