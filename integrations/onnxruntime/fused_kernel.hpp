#pragma once

#include "runtime.hpp"
#include "session_facts.hpp"

#include "fusion/block.hpp"

#include <string>
#include <vector>

namespace maskwise::ort {

// Nodes that become one.
struct fused_node {
    std::string name; // of the Softmax
    data_type type{};
    std::vector<std::string> inputs; // names of the values that enter, in the order of the block's
    std::string output;
    fusion::block block;
};

// The kernel of a node that stands for others, for any shapes and any number of threads at once.
// `with` outlives it. Throws error where the node has other inputs than `form`.
abi::compute_info* make_fused_kernel(const runtime& with, const abi::node* node, fused_node form,
                                     std::shared_ptr<session_facts> session);

void release_fused_kernel(abi::compute_info* kernel) noexcept;

} // namespace maskwise::ort
