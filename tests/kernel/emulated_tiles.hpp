#pragma once

#include "kernel/attention/tile_layout.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace maskwise {

// The arithmetic of AMX's bf16 products. Denormal inputs and results count as zeros.
namespace tile_arithmetic {

inline float without_denormals(float value) {
    return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value;
}

// Rounds to 24 bits, to nearest even. Flushes a rounded value below the smallest normal number to
// zero.
inline float rounded(double value) {
    constexpr float least = std::numeric_limits<float>::min();
    if (!(std::abs(value) < static_cast<double>(least))) return static_cast<float>(value);
    const auto larger = static_cast<float>(value * 0x1p64);
    const bool is_normal = std::abs(larger) >= least * 0x1p64F;
    return std::copysign(is_normal ? least : 0.0F, larger);
}

inline float add(float a, float b) {
    return rounded(double{without_denormals(a)} + double{without_denormals(b)});
}

// Rounds once, to f32. f64 holds the product exactly, and also the sum, unless one operand is too
// small to change the result.
inline float multiply_add(float a, float b, float sum) {
    const double product = double{without_denormals(a)} * double{without_denormals(b)};
    return rounded(product + double{without_denormals(sum)});
}

} // namespace tile_arithmetic

// AMX tiles in plain C++. The tiles add and round in the order of TDPBF16PS (Intel's manual), but
// may return a different NaN if several inputs are NaN. Use without configure() ends the process,
// as on a CPU. `Columns` is the number of columns of tile b and of the tile of sums.
template <int Columns>
class emulated_tiles {
public:
    static constexpr int columns = Columns;

    static void configure() { configured().fetch_add(1, std::memory_order_relaxed); }
    static void release() { configured().fetch_sub(1, std::memory_order_relaxed); }

    emulated_tiles() {
        for (auto& tile : tiles_) tile.fill(std::numeric_limits<float>::quiet_NaN());
    }

    template <int Tile>
    void zero() {
        tile<Tile>().fill(0);
    }

    template <int Tile>
    void load(const void* from, std::int64_t row_bytes) {
        for (std::int64_t row = 0; row < tile_rows; ++row)
            std::memcpy(&tile<Tile>()[static_cast<std::size_t>(row * width<Tile>)],
                        static_cast<const std::byte*>(from) + row * row_bytes,
                        width<Tile> * sizeof(float));
    }

    template <int Tile>
    void store(void* to, std::int64_t row_bytes) {
        for (std::int64_t row = 0; row < tile_rows; ++row)
            std::memcpy(static_cast<std::byte*>(to) + row * row_bytes,
                        &tile<Tile>()[static_cast<std::size_t>(row * width<Tile>)],
                        width<Tile> * sizeof(float));
    }

    template <int Sum, int A, int B>
    void add_products() {
        for (std::size_t row = 0; row < tile_rows; ++row)
            for (std::size_t column = 0; column < Columns; ++column) {
                float& sum = tile<Sum>()[row * Columns + column];
                sum = tile_arithmetic::add(sum,
                                           dot(&tile<A>()[row * tile_pairs], &tile<B>()[column]));
            }
    }

private:
    template <int Tile>
    static constexpr std::int64_t width =
        Tile >= first_a_tile&& Tile < first_b_tile ? tile_pairs : Columns;

    static std::atomic<int>& configured() {
        static constinit std::atomic<int> threads = 0;
        return threads;
    }

    template <int Tile>
    auto& tile() {
        if (configured().load(std::memory_order_relaxed) == 0) std::abort();
        return tiles_[Tile];
    }

    static float low(float pair) {
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(pair) << 16);
    }
    static float high(float pair) {
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(pair) & 0xFFFF0000U);
    }

    // Sums the low and the high halves of the pairs separately, then adds the two sums.
    static float dot(const float* a, const float* b) {
        float even = 0, odd = 0;
        for (std::size_t k = 0; k < tile_pairs; ++k, b += Columns) {
            even = tile_arithmetic::multiply_add(low(a[k]), low(*b), even);
            odd = tile_arithmetic::multiply_add(high(a[k]), high(*b), odd);
        }
        return tile_arithmetic::add(even, odd);
    }

    std::array<std::array<float, tile_rows * tile_pairs>, 8> tiles_;
};

} // namespace maskwise
