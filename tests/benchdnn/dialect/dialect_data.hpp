#pragma once

#include "dialect/dialect_case.hpp"
#include "support/guarded_buffer.hpp"
#include "support/oracle.hpp"

#include <cstdint>
#include <string>

namespace maskwise::bench {

using test::guarded_buffer;
using edge = guarded_buffer::edge;

// One operand's memory: arbitrary bits, or strings, in a guarded buffer.
class dialect_data {
public:
    dialect_data(const dialect_operand& layout, edge where, std::uint64_t seed);
    ~dialect_data();
    dialect_data(const dialect_data&) = delete;
    dialect_data& operator=(const dialect_data&) = delete;

    void fill_mask(const std::string& kind, std::uint64_t seed);

    std::byte* first() const { return view_.data; } // element {0,...,0}
    std::byte* at(const dims& index) const {        // index of dst; right aligned, 1 repeats
        return first() + test::offset_bytes(view_, index);
    }
    const guarded_buffer& buffer() const { return buffer_; }
    bool holds_strings() const { return layout_.type == maskwise::data_type::string; }
    std::size_t width() const { return maskwise::width_bytes(layout_.type); }

private:
    std::size_t objects() const { return buffer_.bytes().size() / width(); }

    dialect_operand layout_;
    test::view view_;
    guarded_buffer buffer_;
};

} // namespace maskwise::bench
