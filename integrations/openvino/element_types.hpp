#pragma once

#include "maskwise/maskwise.hpp"

#include <openvino/core/type/element_type.hpp>

namespace maskwise::openvino {

enum class in_the_cpu_plugin { kept, narrowed };

struct element_pair {
    ov::element::Type_t theirs;
    data_type ours;
    // Whether values change on the way to an operation and back: i64 and u64 become i32, f64 f32.
    // Some others become wider and come back as they were.
    in_the_cpu_plugin values = in_the_cpu_plugin::kept;
};

// The types of Select-1 that Maskwise has.
inline constexpr element_pair element_types[] = {
    {ov::element::boolean, data_type::boolean},
    {ov::element::i8, data_type::i8},
    {ov::element::u8, data_type::u8},
    {ov::element::i16, data_type::i16},
    {ov::element::u16, data_type::u16},
    {ov::element::f16, data_type::f16},
    {ov::element::bf16, data_type::bf16},
    {ov::element::i32, data_type::i32},
    {ov::element::u32, data_type::u32},
    {ov::element::f32, data_type::f32},
    {ov::element::i64, data_type::i64, in_the_cpu_plugin::narrowed},
    {ov::element::u64, data_type::u64, in_the_cpu_plugin::narrowed},
    {ov::element::f64, data_type::f64, in_the_cpu_plugin::narrowed},
};

// undef for a type that is not among them.
inline data_type type_of(ov::element::Type_t element) {
    for (const element_pair& pair : element_types)
        if (pair.theirs == element) return pair.ours;
    return data_type::undef;
}

inline bool is_narrowed(ov::element::Type_t element) {
    for (const element_pair& pair : element_types)
        if (pair.theirs == element) return pair.values == in_the_cpu_plugin::narrowed;
    return false;
}

} // namespace maskwise::openvino
