#pragma once

#include "find_fusions.hpp"
#include "registry.hpp"

#include <map>
#include <set>
#include <string>

namespace maskwise::ort {

struct session_settings {
    bool is_verbose = false;
    bool is_enabled = true;             // else every node is left
    std::string reason_against_fusions; // empty: nodes are fused
    bool has_stable_optimizers = false; // without MatmulTransposeFusion
    int threads = 1;
};

// The provider of one session; it must not outlive its factory's runtime and registry.
class provider : public OrtEp {
public:
    provider(const runtime& with, OrtKernelRegistry* kernels, session_settings settings);

    // Of its kernels, too, which may outlive it.
    const std::shared_ptr<session_facts>& session() const { return session_; }

private:
    void claim_nodes(const model_graph& graph, OrtEpGraphSupportInfo* support);
    // Returns what it claimed, and each Softmax that it said something of.
    std::set<const node*> claim_fusions(const model_graph& graph, OrtEpGraphSupportInfo* support,
                                        rounding& rounds);
    void claim_node(const node& each, OrtEpGraphSupportInfo* support, rounding& rounds) const;
    bool wants(const node& each, OrtEpGraphSupportInfo* support, rounding& rounds) const;
    void report(std::string_view name, const std::string& what, const std::string& why) const;
    OrtNodeComputeInfo* compile_fused(const OrtNode* node) const;

    const runtime& with_;
    OrtKernelRegistry* const kernels_;
    const session_settings settings_;
    const std::shared_ptr<session_facts> session_;
    // By the name of the output: those that ONNX Runtime is going to have compiled.
    std::map<std::string, fused_node, std::less<>> fusions_;
};

} // namespace maskwise::ort
