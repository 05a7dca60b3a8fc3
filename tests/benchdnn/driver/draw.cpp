#include "driver/draw.hpp"

#include "data/tensor.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>

namespace maskwise::bench::driver {
namespace {

constexpr std::size_t chunk = 64; // elements that share a seed

struct range {
    int low;
    int high;

    std::int64_t largest() const { return std::max(std::abs(low), std::abs(high)); }
    void halve() {
        low /= 2;
        high /= 2;
    }
};

std::minstd_rand seeded(std::size_t seed, unsigned skipped) {
    std::minstd_rand generator(static_cast<std::minstd_rand::result_type>(seed));
    generator.discard(skipped);
    return generator;
}

bool is_wide(data_type type) {
    return info(type).size >= 4;
}

range range_of(data_type type, range wide, range half, range byte) {
    if (type == data_type::u8) return {0, 8};
    if (type == data_type::u4) return {0, 4};
    if (type == data_type::s4) return {-2, 2};
    if (type == data_type::s8) return byte;
    return is_wide(type) ? wide : half;
}

std::array<range, 3> ranges_of(const product& p) {
    range source = range_of(p.source, {-64, 64}, {-4, 4}, {-4, 4});
    range weights = range_of(p.weights, {-128, 128}, {-2, 2}, {-4, 4});
    if (p.source == data_type::u8 && info(p.weights).size == 1 && is_wide(p.result))
        source.high = 160;
    if (p.source == data_type::s8 && p.weights == data_type::s8) weights = {-2, 2};
    return {source, weights, range{-8, 8}};
}

// Sums of at most this many binary digits are exact in `type`.
int digits_of(data_type type) {
    switch (type) {
    case data_type::bf16:
    case data_type::u8:
        return 8;
    case data_type::f16:
        return 11;
    case data_type::s8:
        return 7;
    default:
        return 24;
    }
}

std::int64_t exact_terms(const product& p, std::array<range, 3>& ranges) {
    const auto terms = [&] {
        const std::int64_t largest = ranges[0].largest() * ranges[1].largest();
        return (std::int64_t{1} << digits_of(p.result)) / largest;
    };
    for (std::size_t slot = 0; terms() < 1; slot = 1 - slot) ranges[slot].halve();
    return terms();
}

float density_of(const product& p, std::int64_t terms) {
    float density = static_cast<float>(terms) / static_cast<float>(p.depth);
    if (info(p.weights).size == 1 && p.result != data_type::s32) density *= 3;
    return std::min(1.0F, density);
}

} // namespace

numbers draw_operand(const product& p, std::size_t slot, std::size_t count) {
    std::array<range, 3> ranges = ranges_of(p);
    const std::int64_t terms = exact_terms(p, ranges);
    const float density = slot == 0 ? density_of(p, terms) : 1.0F;
    std::uniform_int_distribution<> value(ranges.at(slot).low, ranges.at(slot).high);
    std::bernoulli_distribution is_nonzero(density);
    numbers result(count, 0.0);
    for (std::size_t first = 0; first < count; first += chunk) {
        std::minstd_rand values = seeded(slot * count + first + 1, 1);
        std::minstd_rand positions = seeded(slot * count + first + 1, 10);
        std::size_t i = first;
        if (first == 0) { // the first element is positive, so a tensor is never all zeros
            while (result[0] <= 0) result[0] = value(values);
            ++i;
        }
        for (; i < std::min(first + chunk, count); ++i)
            if (density == 1.0F || is_nonzero(positions)) result[i] = value(values);
    }
    return result;
}

numbers draw_binary(std::size_t argument, data_type type, std::size_t count) {
    const bool is_unsigned = argument == 3 || type == data_type::u8;
    std::uniform_int_distribution<> value(is_unsigned ? 0 : -8, 8);
    numbers result(count);
    for (std::size_t first = 0; first < count; first += chunk) {
        std::minstd_rand values = seeded(first + count * argument + 1, 1);
        for (std::size_t i = first; i < std::min(first + chunk, count); ++i) {
            result[i] = value(values);
            if (argument == 1) result[i] *= 0.5;
            if (argument == 2 && result[i] == 0) result[i] = 1; // the operand may be a divisor
            if (argument == 3 && result[i] != 0) result[i] = 1;
        }
    }
    return result;
}

numbers draw_moved(data_type type, std::size_t count) {
    constexpr std::size_t chunks = 16;
    std::uniform_int_distribution<> value(type == data_type::u8 ? 0 : -8, 7);
    numbers result(count);
    const std::size_t step = (count + chunks - 1) / chunks;
    for (std::size_t first = 0; first < count; first += step) {
        std::minstd_rand values = seeded(count + first + 1, 0);
        for (std::size_t i = first; i < std::min(first + step, count); ++i)
            result[i] = value(values);
    }
    return result;
}

numbers draw_from(const numbers& set, std::size_t count) {
    std::uniform_int_distribution<> index(0, static_cast<int>(set.size()) - 1);
    numbers result(count);
    for (std::size_t first = 0; first < count; first += chunk) {
        std::minstd_rand values = seeded(first + 1, 1);
        for (std::size_t i = first; i < std::min(first + chunk, count); ++i)
            result[i] = set[static_cast<std::size_t>(index(values))];
    }
    return result;
}

} // namespace maskwise::bench::driver
