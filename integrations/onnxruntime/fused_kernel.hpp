#pragma once

#include "runtime.hpp"

#include "fusion/compiled_block.hpp"

#include <string>
#include <vector>

namespace maskwise::ort {

// One node that replaces several nodes.
struct fused_block {
    std::string name; // of the Softmax
    data_type type{};
    std::vector<std::string> inputs; // names of the values, in the order of block.inputs()
    std::string output;
    fusion::block block;
};

// State that the kernels of a session share.
struct session_facts {
    int threads = 1;
    fusion::block_scratch scratch;
};

// Returns a thread-safe kernel for a fused node with these inputs, of any shapes. `api` must
// outlive the kernel. Throws error if an input of `fused` is not among `inputs`.
OrtNodeComputeInfo* make_fused_kernel(const runtime& api,
                                      const std::vector<std::string_view>& inputs,
                                      fused_block fused, std::shared_ptr<session_facts> session);

void release_fused_kernel(OrtNodeComputeInfo* kernel) noexcept;

} // namespace maskwise::ort
