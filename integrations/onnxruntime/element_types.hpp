#pragma once

#include "abi.hpp"

#include "maskwise/maskwise.hpp"

#include <array>
#include <utility>

namespace maskwise::ort {

// The types of Where that ONNX Runtime hands to kernels: all but the complex ones.
inline constexpr std::array<std::pair<abi::element_type, data_type>, 14> element_types{{
    {abi::element_bool, data_type::boolean},
    {abi::element_i8, data_type::i8},
    {abi::element_u8, data_type::u8},
    {abi::element_i16, data_type::i16},
    {abi::element_u16, data_type::u16},
    {abi::element_f16, data_type::f16},
    {abi::element_bf16, data_type::bf16},
    {abi::element_i32, data_type::i32},
    {abi::element_u32, data_type::u32},
    {abi::element_f32, data_type::f32},
    {abi::element_i64, data_type::i64},
    {abi::element_u64, data_type::u64},
    {abi::element_f64, data_type::f64},
    {abi::element_string, data_type::string},
}};

// undef for a type that is not among them.
inline data_type type_of(abi::element_type element) {
    for (const auto& [theirs, ours] : element_types)
        if (theirs == element) return ours;
    return data_type::undef;
}

} // namespace maskwise::ort
