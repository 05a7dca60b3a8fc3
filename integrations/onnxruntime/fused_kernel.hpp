#pragma once

#include "runtime.hpp"

#include "fusion/compiled_block.hpp"

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

// What the kernels of a session share.
struct session_facts {
    int threads = 1;
    fusion::block_scratch scratch;
};

// The kernel of a node with these inputs that stands for others, for any shapes and any number of
// threads at once. `with` outlives it. Throws error where `form` has an input that is not there.
OrtNodeComputeInfo* make_fused_kernel(const runtime& with,
                                      const std::vector<std::string_view>& inputs, fused_node form,
                                      std::shared_ptr<session_facts> session);

void release_fused_kernel(OrtNodeComputeInfo* kernel) noexcept;

} // namespace maskwise::ort
