// Extents and strides at the limits of 64 bits, and memory of exactly the needed size.
#pragma once

#include "support/case_generator.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace maskwise::test {

using wide = long double; // does not overflow in sums and products of extents
using numbers = std::span<const std::int64_t>;

constexpr std::int64_t power(int exponent) {
    return std::int64_t{1} << exponent;
}

inline constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
// Bytes of the largest operand that a test allocates.
inline constexpr std::int64_t longest_memory = power(16);
inline constexpr std::int64_t huge_extents[] = {
    power(16),     power(31) - 1, power(31), power(31) + 1, power(32), power(47), power(48),
    power(48) + 1, power(57) - 1, power(57), power(58),     power(59), power(60), power(60) + 1,
    power(61),     power(62) - 1, power(62), most - 63,     most - 1,  most};
inline constexpr std::int64_t usual_extents[] = {1, 1, 1, 2, 3, 5, 17, 64, 65};

class chance {
public:
    explicit chance(unsigned seed) : random_(seed) {}

    bool one_in(int n) { return below(n) == 0; }
    int below(int n) { return static_cast<int>(draw(random_, 0, n - 1)); }
    std::int64_t any_of(numbers choices) {
        return choices[static_cast<std::size_t>(below(static_cast<int>(choices.size())))];
    }
    std::int64_t extent() {
        if (one_in(60)) return one_in(2) ? -1 : least;
        if (one_in(12)) return 0;
        return any_of(one_in(4) ? numbers(huge_extents) : numbers(usual_extents));
    }
    // A random stride, mostly 0 if the extent is huge. `unit` is the stride of adjacent elements.
    std::int64_t stride(std::int64_t extent, std::int64_t unit) {
        if (extent > longest_memory || one_in(3)) return one_in(20) ? unit : 0;
        if (one_in(12)) return one_in(10) ? least : (one_in(2) ? 1 : -1) * any_of(huge_extents);
        return (one_in(3) ? -1 : 1) * unit * any_of(usual_extents);
    }

private:
    generator random_;
};

inline wide elements_of(numbers extents) {
    wide count = 1;
    for (const std::int64_t extent : extents) count *= static_cast<wide>(extent);
    return count;
}

// The bytes that a tensor's elements span: before element {0,...,0}, and from this element on.
struct reach {
    wide before = 0, after = 0;
    bool is_empty = false;

    reach(numbers extents, numbers strides_bytes, std::size_t width)
        : after(static_cast<wide>(width)), is_empty(std::ranges::count(extents, 0) > 0) {
        for (std::size_t d = 0; d < extents.size(); ++d) {
            const wide bytes =
                (static_cast<wide>(extents[d]) - 1) * static_cast<wide>(strides_bytes[d]);
            (bytes < 0 ? before : after) += bytes < 0 ? -bytes : bytes;
        }
    }
    bool is_addressable() const {
        return is_empty || before + after <= static_cast<wide>(power(60));
    }
};

// Memory of exactly the needed bytes, so that AddressSanitizer detects overruns. make returns
// nullopt for more than longest_memory bytes.
class exact_memory {
public:
    static std::optional<exact_memory> make(const reach& bytes) {
        if (bytes.is_empty) return exact_memory(0, 0);
        const wide total = bytes.before + bytes.after;
        if (total > static_cast<wide>(longest_memory)) return std::nullopt;
        return exact_memory(static_cast<std::size_t>(bytes.before),
                            static_cast<std::size_t>(total));
    }
    std::byte* first() { return bytes_.data() + first_; }

private:
    exact_memory(std::size_t first, std::size_t size) : bytes_(size), first_(first) {}

    std::vector<std::byte> bytes_;
    std::size_t first_;
};

} // namespace maskwise::test
