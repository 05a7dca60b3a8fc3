#pragma once

#include "maskwise/maskwise.hpp"
#include "support/numbers.hpp"

namespace maskwise::test {

// The library's name of a type that attention and expressions compute with.
constexpr element element_of(data_type type) {
    switch (type) {
    case data_type::boolean:
        return element::boolean;
    case data_type::i8:
        return element::s8;
    case data_type::u8:
        return element::u8;
    case data_type::f16:
        return element::f16;
    case data_type::bf16:
        return element::bf16;
    default:
        return element::f32;
    }
}

} // namespace maskwise::test
