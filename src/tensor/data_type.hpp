#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace maskwise {

enum class data_type : std::uint8_t {
    undef,
#define MASKWISE_DATA_TYPE(name, width_bytes) name,
#include "tensor/data_types.inc"
#undef MASKWISE_DATA_TYPE
};

// Bytes of one element; 0 for undef and string.
std::size_t width_bytes(data_type type);

// "f32", "boolean", ...; "undef" for anything else.
std::string_view to_string(data_type type);

} // namespace maskwise
