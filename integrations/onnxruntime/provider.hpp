#pragma once

#include "fused_kernel.hpp"
#include "kernels.hpp"
#include "rounding.hpp"
#include "session_facts.hpp"

#include <map>
#include <set>
#include <string>

namespace maskwise::ort {

struct session_settings {
    bool is_verbose = false;
    bool fuses = true;
    bool has_stable_optimizers = false; // without MatmulTransposeFusion
    int threads = 1;
};

// The provider of one session; it must not outlive its factory's runtime and registry.
class provider : public abi::layout::ep {
public:
    provider(const runtime& with, const abi::kernel_registry* kernels, session_settings settings);

private:
    static abi::status* get_capability(abi::ep* own, const abi::graph* graph,
                                       abi::support_info* support) noexcept;
    static abi::status* compile_fused(abi::ep* own, const abi::graph** graphs,
                                      const abi::node** nodes, std::size_t count,
                                      abi::compute_info** kernels, abi::node** contexts) noexcept;
    void claim_nodes(const abi::graph* graph, abi::support_info* support);
    void keep_claims(const abi::graph* graph, abi::support_info* support) const;
    std::set<const abi::node*> claim_fusions(const abi::graph* graph, abi::support_info* support,
                                             rounding& rounds);
    bool wants(const abi::node* node, abi::support_info* support, rounding& rounds) const;
    void report(const abi::node* node, const std::string& what, const std::string& why) const;

    const runtime& with_;
    const abi::kernel_registry* kernels_;
    session_settings settings_;
    std::shared_ptr<session_facts> session_; // of the kernels, too
    // By the name of the output: those that ONNX Runtime is going to have compiled.
    std::map<std::string, fused_node, std::less<>> fusions_;
};

} // namespace maskwise::ort
