#pragma once

// Attention that rounds elsewhere than the graph says: what a fault puts in place of a result.

#include <cstddef>

namespace maskwise::bench {

// f32, or bf16 where `is_bf16`; dense.
struct element_view {
    unsigned char* data = nullptr;
    bool is_bf16 = false;

    float load(std::size_t i) const;
    void store(std::size_t i, float value) const;
};

struct causal_attention {
    element_view query, key, value, factor, result;
    std::size_t heads, rows, depth;
};

// Divides by the sum of the weights after the second product; with `rounds_weights` these are
// rounded to bf16 before.
void attend_dividing_late(const causal_attention& a, bool rounds_weights);

} // namespace maskwise::bench
