#include "faults/wrong_attention.hpp"

#include "support/numbers.hpp"

#include <algorithm>
#include <cmath>

namespace maskwise::bench {
namespace {

// exp(score - highest) of the keys up to the row's own; returns their sum.
float fill_weights(const causal_attention& a, std::size_t head, std::size_t row,
                   std::vector<float>& weights) {
    const std::size_t first = head * a.rows * a.depth;
    weights.assign(row + 1, 0);
    for (std::size_t key = 0; key <= row; ++key) {
        for (std::size_t d = 0; d < a.depth; ++d)
            weights[key] += static_cast<float>(a.query[first + row * a.depth + d] *
                                               a.key[first + key * a.depth + d]);
        weights[key] *= static_cast<float>(a.factor);
    }
    const float highest = *std::max_element(weights.begin(), weights.end());
    float sum = 0;
    for (float& weight : weights) sum += weight = std::exp(weight - highest);
    return sum;
}

} // namespace

std::vector<double> attend_dividing_late(const causal_attention& a, bool rounds_weights) {
    std::vector<float> weights;
    std::vector<double> result;
    for (std::size_t line = 0; line < a.heads * a.rows; ++line) {
        const std::size_t head = line / a.rows;
        const float sum = fill_weights(a, head, line % a.rows, weights);
        if (rounds_weights)
            for (float& weight : weights)
                weight = static_cast<float>(test::round_to(weight, test::element::bf16));
        for (std::size_t d = 0; d < a.depth; ++d) {
            float product = 0;
            for (std::size_t key = 0; key < weights.size(); ++key)
                product +=
                    weights[key] * static_cast<float>(a.value[(head * a.rows + key) * a.depth + d]);
            result.push_back(product / sum);
        }
    }
    return result;
}

} // namespace maskwise::bench
