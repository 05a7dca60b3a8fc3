#include "tensor/tensor_desc.hpp"

#include "base/checked.hpp"
#include "base/error.hpp"

namespace maskwise {
namespace {

[[noreturn]] void throw_overflow(const dims& extents) {
    throw invalid_shape("shape " + to_string(extents) + " has more bytes than can be addressed");
}

void require_no_negative(const dims& extents) {
    for (const std::int64_t extent : extents)
        if (extent < 0) throw invalid_shape("negative extent in " + to_string(extents));
}

} // namespace

tensor_desc dense_desc(data_type type, const dims& extents) {
    require_no_negative(extents);
    tensor_desc desc{type, extents, dims(extents.rank(), 0)};
    auto stride = static_cast<std::int64_t>(width_bytes(type));
    for (int d = extents.rank() - 1; d >= 0; --d) {
        desc.strides_bytes[d] = stride;
        const auto next = checked_multiply(stride, std::max<std::int64_t>(extents[d], 1));
        if (!next) throw_overflow(extents);
        stride = *next;
    }
    return desc;
}

std::int64_t element_count(const dims& extents) {
    require_no_negative(extents);
    if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return 0;
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) {
        const auto next = checked_multiply(count, extent);
        if (!next) throw_overflow(extents);
        count = *next;
    }
    return count;
}

std::int64_t span_bytes(const tensor_desc& desc) {
    if (element_count(desc.extents) == 0) return 0;
    auto span = static_cast<std::int64_t>(width_bytes(desc.type));
    for (int d = 0; d < desc.extents.rank(); ++d) {
        const auto reach = checked_multiply(desc.extents[d] - 1, desc.strides_bytes[d]);
        const auto distance = reach && *reach < 0 ? checked_multiply(*reach, -1) : reach;
        const auto next = distance ? checked_add(span, *distance) : std::nullopt;
        if (!next || *next > max_span_bytes) throw_overflow(desc.extents);
        span = *next;
    }
    return span;
}

} // namespace maskwise
