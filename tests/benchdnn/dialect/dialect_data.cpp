#include "dialect/dialect_data.hpp"

#include "data/mask.hpp"
#include "data/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

namespace maskwise::bench {
namespace {

// In bytes, at no memory yet.
test::view view_of(const dialect_operand& o) {
    test::view made{nullptr, o.shape, o.strides};
    for (std::int64_t& stride : made.strides_bytes)
        stride *= static_cast<std::int64_t>(maskwise::width_bytes(o.type));
    return made;
}

std::string* strings_of(const guarded_buffer& buffer) {
    return reinterpret_cast<std::string*>(buffer.bytes().data());
}

} // namespace

dialect_data::dialect_data(const dialect_operand& layout, edge where, std::uint64_t seed)
    : layout_(layout), view_(view_of(layout)),
      buffer_(static_cast<std::size_t>(test::span_bytes(view_, static_cast<std::int64_t>(width()))),
              where) {
    view_.data = buffer_.bytes().data() + test::bytes_below(view_);
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

} // namespace maskwise::bench
