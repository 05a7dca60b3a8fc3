#pragma once

#include "maskwise/maskwise.hpp"

#include <openvino/core/type/element_type.hpp>

namespace maskwise::openvino {

struct element_pair {
    ov::element::Type_t theirs;
    data_type ours;
    bool is_converted; // before the CPU plugin computes with it
};

// The types of Select-1 that Maskwise has.
inline constexpr element_pair element_types[] = {
    {ov::element::boolean, data_type::boolean, true}, {ov::element::i8, data_type::i8, false},
    {ov::element::u8, data_type::u8, false},          {ov::element::i16, data_type::i16, true},
    {ov::element::u16, data_type::u16, true},         {ov::element::f16, data_type::f16, true},
    {ov::element::bf16, data_type::bf16, true},       {ov::element::i32, data_type::i32, false},
    {ov::element::u32, data_type::u32, true},         {ov::element::f32, data_type::f32, false},
    {ov::element::i64, data_type::i64, true},         {ov::element::u64, data_type::u64, true},
    {ov::element::f64, data_type::f64, true},
};

// undef for a type that is not among them.
inline element_pair pair_of(ov::element::Type_t element) {
    for (const element_pair& pair : element_types)
        if (pair.theirs == element) return pair;
    return {element, data_type::undef, false};
}

inline data_type type_of(ov::element::Type_t element) {
    return pair_of(element).ours;
}

} // namespace maskwise::openvino
