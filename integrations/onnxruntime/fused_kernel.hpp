#pragma once

#include "fusion.hpp"
#include "runtime.hpp"
#include "session_facts.hpp"

namespace maskwise::ort {

// The kernel of a node that stands for others, for any shapes and any number of threads at once.
// `with` outlives it. Throws error where the node has other inputs than the fusion.
abi::compute_info* make_fused_kernel(const runtime& with, const abi::node* node, fusion form,
                                     std::shared_ptr<session_facts> session);

void release_fused_kernel(abi::compute_info* kernel) noexcept;

} // namespace maskwise::ort
