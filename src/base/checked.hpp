#pragma once

#include <cstdint>
#include <optional>

namespace maskwise {

// a * b, or nullopt if int64 overflows. For extents and byte strides that a client chose.
inline std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
    return result;
}

// Holds the product of any two int64, and sums of a few products of sizes.
__extension__ using wide = __int128;

} // namespace maskwise
