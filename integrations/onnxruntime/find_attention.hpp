#pragma once

#include "fusion.hpp"
#include "fusion_graph.hpp"

#include <optional>
#include <vector>

namespace maskwise::ort {

struct found_attention {
    fusion form; // without its output
    std::size_t result = 0;
    std::vector<std::size_t> op_ids;
};

// The MatMuls on both sides of the chain, Transposes of their inputs and of the result, and
// factors of query and key; nothing where the kernels of attention cannot do what the chain does.
std::optional<found_attention> find_attention(const fusion_ops& ops, const fusion_rules& rules,
                                              const graph::row_chain& chain);

} // namespace maskwise::ort
