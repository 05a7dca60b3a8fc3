#include "faults/wrong_attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace maskwise::bench {
namespace {

std::uint16_t to_bf16(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bf16(std::uint16_t half) {
    const std::uint32_t bits = std::uint32_t{half} << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// exp(score - highest) of the keys up to the row's own; returns their sum.
float fill_weights(const causal_attention& a, std::size_t head, std::size_t row,
                   std::vector<float>& weights) {
    const std::size_t first = head * a.rows * a.depth;
    for (std::size_t key = 0; key <= row; ++key) {
        weights[key] = 0;
        for (std::size_t d = 0; d < a.depth; ++d)
            weights[key] +=
                a.query.load(first + row * a.depth + d) * a.key.load(first + key * a.depth + d);
        weights[key] *= a.factor.load(0);
    }
    const auto end = weights.begin() + static_cast<std::ptrdiff_t>(row + 1);
    const float highest = *std::max_element(weights.begin(), end);
    float sum = 0;
    for (std::size_t key = 0; key <= row; ++key) {
        weights[key] = std::exp(weights[key] - highest);
        sum += weights[key];
    }
    return sum;
}

} // namespace

float element_view::load(std::size_t i) const {
    float value;
    std::uint16_t half;
    if (!is_bf16) return std::memcpy(&value, data + i * sizeof value, sizeof value), value;
    std::memcpy(&half, data + i * sizeof half, sizeof half);
    return from_bf16(half);
}

void element_view::store(std::size_t i, float value) const {
    const std::uint16_t half = to_bf16(value);
    if (is_bf16)
        std::memcpy(data + i * sizeof half, &half, sizeof half);
    else
        std::memcpy(data + i * sizeof value, &value, sizeof value);
}

void attend_dividing_late(const causal_attention& a, bool rounds_weights) {
    std::vector<float> weights(a.rows);
    for (std::size_t line = 0; line < a.heads * a.rows; ++line) {
        const std::size_t row = line % a.rows;
        const std::size_t head = line / a.rows;
        const float sum = fill_weights(a, head, row, weights);
        for (std::size_t d = 0; d < a.depth; ++d) {
            float product = 0;
            for (std::size_t key = 0; key <= row; ++key) {
                const float weight =
                    rounds_weights ? from_bf16(to_bf16(weights[key])) : weights[key];
                product += weight * a.value.load((head * a.rows + key) * a.depth + d);
            }
            a.result.store(line * a.depth + d, product / sum);
        }
    }
}

} // namespace maskwise::bench
