#pragma once

#include "data/guarded_buffer.hpp"
#include "dialect/dialect_case.hpp"

#include <cstdint>
#include <string>

namespace maskwise::bench {

// One operand's memory: arbitrary bits, or strings, in a guarded buffer.
class dialect_data {
public:
    dialect_data(const dialect_operand& layout, placement where, std::uint64_t seed);
    ~dialect_data();
    dialect_data(const dialect_data&) = delete;
    dialect_data& operator=(const dialect_data&) = delete;

    void fill_mask(const std::string& kind, std::uint64_t seed);

    std::byte* first() const { return buffer_.bytes().data() + below_; } // element {0,...,0}
    std::byte* at(const dims& index) const; // index of dst; right aligned, 1 repeats
    const guarded_buffer& buffer() const { return buffer_; }
    bool holds_strings() const { return layout_.type == maskwise::data_type::string; }
    std::size_t width() const { return maskwise::width_bytes(layout_.type); }

private:
    std::size_t objects() const { return buffer_.bytes().size() / width(); }

    dialect_operand layout_;
    std::size_t below_; // bytes in front of element {0,...,0}
    guarded_buffer buffer_;
};

} // namespace maskwise::bench
