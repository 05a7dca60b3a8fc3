#include "tensor/tensor_desc.hpp"

#include "base/checked.hpp"
#include "base/error.hpp"

namespace maskwise {
namespace {

[[noreturn]] void throw_overflow(const dims& extents) {
    throw shape_error("shape " + to_string(extents) + " has more bytes than can be addressed");
}

} // namespace

inline namespace v1 {

std::string to_string(const dims& values) {
    std::string text = "{";
    for (const std::int64_t value : values) {
        if (text.size() > 1) text += ',';
        text += std::to_string(value);
    }
    return text + '}';
}

} // namespace v1

void require_no_negative(const dims& extents, std::string_view owner, std::string_view name) {
    for (int d = 0; d < extents.rank(); ++d)
        if (extents[d] < 0)
            throw shape_error(std::string(owner) + (owner.empty() ? "" : ": ") + std::string(name) +
                              ' ' + to_string(extents) + ": extent " + std::to_string(extents[d]) +
                              " at position " + std::to_string(d) + " is negative");
}

dimension_order order_of(const dims& strides) {
    dimension_order order = row_major;
    std::sort(order.begin(), order.begin() + strides.rank(), [&](int a, int b) {
        return strides[a] != strides[b] ? strides[a] > strides[b] : a < b;
    });
    return order;
}

dims dense_strides(const dims& extents, std::int64_t unit, const dimension_order& order) {
    dims strides = dims::filled(extents.rank(), unit);
    for (int i = extents.rank() - 1; i >= 0; --i) {
        const int d = order[static_cast<std::size_t>(i)];
        strides[d] = unit;
        const auto next = checked_multiply(unit, std::max<std::int64_t>(extents[d], 1));
        if (!next) throw_overflow(extents);
        unit = *next;
    }
    return strides;
}

tensor_desc dense_desc(data_type type, const dims& extents, const dimension_order& order) {
    require_no_negative(extents);
    const auto width = static_cast<std::int64_t>(width_bytes(type));
    return {type, extents, dense_strides(extents, width, order)};
}

void fill_in_strides(tensor_desc& desc) {
    if (!desc.strides_bytes.empty()) return;
    require_no_negative(desc.extents);
    desc.strides_bytes =
        dense_strides(desc.extents, static_cast<std::int64_t>(width_bytes(desc.type)));
}

tensor_desc with_strides(tensor_desc desc) {
    fill_in_strides(desc);
    return desc;
}

std::string to_string(const tensor_desc& desc) {
    return std::string(to_string(desc.type)) + ' ' + to_string(desc.extents) +
           ", strides in bytes " + to_string(desc.strides_bytes);
}

dims without_last(const dims& extents, int count) {
    return dims(std::span(extents.begin(), static_cast<std::size_t>(extents.rank() - count)));
}

dims with_matrix(dims outer, std::int64_t rows, std::int64_t columns) {
    outer.push_back(rows);
    outer.push_back(columns);
    return outer;
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
    wide span = width_bytes(desc.type);
    for (int d = 0; d < desc.extents.rank(); ++d) {
        const wide reach = wide{desc.extents[d] - 1} * desc.strides_bytes[d];
        span += reach < 0 ? -reach : reach;
        if (span > max_span_bytes)
            throw shape_error("shape " + to_string(desc.extents) + " with strides in bytes " +
                              to_string(desc.strides_bytes) +
                              " has more bytes than can be addressed");
    }
    return static_cast<std::int64_t>(span);
}

} // namespace maskwise
