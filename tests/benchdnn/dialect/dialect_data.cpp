#include "dialect/dialect_data.hpp"

#include "data/mask.hpp"
#include "data/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace maskwise::bench {
namespace {

std::size_t bytes_below(const dialect_operand& o) {
    std::int64_t elements = 0;
    for (std::size_t d = 0; d < o.shape.size(); ++d)
        if (o.shape[d] > 1 && o.strides[d] < 0) elements -= (o.shape[d] - 1) * o.strides[d];
    return static_cast<std::size_t>(elements) * maskwise::width_bytes(o.type);
}

std::size_t span_bytes(const dialect_operand& o) {
    if (element_count(o.shape) == 0) return 0;
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < o.shape.size(); ++d)
        elements += (o.shape[d] - 1) * std::abs(o.strides[d]);
    return static_cast<std::size_t>(elements) * maskwise::width_bytes(o.type);
}

std::string* strings_of(const guarded_buffer& buffer) {
    return reinterpret_cast<std::string*>(buffer.bytes().data());
}

} // namespace

dialect_data::dialect_data(const dialect_operand& layout, placement where, std::uint64_t seed)
    : layout_(layout), below_(bytes_below(layout)), buffer_(span_bytes(layout), where) {
    random_bits random(seed);
    if (holds_strings()) {
        for (std::size_t i = 0; i < objects();
             ++i) // every fourth is too long for the object itself
            new (strings_of(buffer_) + i)
                std::string(fmt::format("{}.{}", seed, i) + std::string(i % 4 == 0 ? 30 : 0, '-'));
        return;
    }
    for (std::byte& b : buffer_.bytes()) b = static_cast<std::byte>(random.next());
}

dialect_data::~dialect_data() {
    if (holds_strings()) std::destroy_n(strings_of(buffer_), objects());
}

void dialect_data::fill_mask(const std::string& kind, std::uint64_t seed) {
    const dims flat{static_cast<std::int64_t>(buffer_.bytes().size())};
    const bool is_dense = layout_.strides == dense_strides(layout_.shape);
    const tensor mask =
        make_mask(kind == "auto" ? "random" : kind, is_dense ? layout_.shape : flat, true, seed);
    std::ranges::copy(mask.bytes, buffer_.bytes().begin());
}

std::byte* dialect_data::at(const dims& index) const {
    std::ptrdiff_t element = 0;
    const std::size_t missing = index.size() - layout_.shape.size();
    for (std::size_t d = 0; d < layout_.shape.size(); ++d)
        if (layout_.shape[d] != 1) element += layout_.strides[d] * index[missing + d];
    return first() + element * static_cast<std::ptrdiff_t>(width());
}

} // namespace maskwise::bench
