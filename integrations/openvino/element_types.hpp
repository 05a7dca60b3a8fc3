#pragma once

#include "maskwise/maskwise.hpp"

#include <openvino/core/type/element_type.hpp>

namespace maskwise::openvino {

// What the CPU plugin makes of elements before it computes with them.
enum class conversion { none, wider, narrower };

struct element_pair {
    ov::element::Type_t theirs;
    data_type ours;
    conversion made;
};

// The types of Select-1 that Maskwise has.
inline constexpr element_pair element_types[] = {
    {ov::element::boolean, data_type::boolean, conversion::wider},
    {ov::element::i8, data_type::i8, conversion::none},
    {ov::element::u8, data_type::u8, conversion::none},
    {ov::element::i16, data_type::i16, conversion::wider},
    {ov::element::u16, data_type::u16, conversion::wider},
    {ov::element::f16, data_type::f16, conversion::wider},
    {ov::element::bf16, data_type::bf16, conversion::wider},
    {ov::element::i32, data_type::i32, conversion::none},
    {ov::element::u32, data_type::u32, conversion::wider}, // to i32 and back, modulo 2^32
    {ov::element::f32, data_type::f32, conversion::none},
    {ov::element::i64, data_type::i64, conversion::narrower}, // to i32
    {ov::element::u64, data_type::u64, conversion::narrower}, // to i32
    {ov::element::f64, data_type::f64, conversion::narrower}, // to f32
};

// undef and none for a type that is not among them.
inline element_pair pair_of(ov::element::Type_t element) {
    for (const element_pair& pair : element_types)
        if (pair.theirs == element) return pair;
    return {element, data_type::undef, conversion::none};
}

inline data_type type_of(ov::element::Type_t element) {
    return pair_of(element).ours;
}

} // namespace maskwise::openvino
