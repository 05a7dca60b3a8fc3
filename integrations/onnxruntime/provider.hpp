#pragma once

#include "find_fusions.hpp"
#include "registry.hpp"

#include <map>
#include <set>
#include <string>

namespace maskwise::ort {

struct session_settings {
    bool is_verbose = false;
    bool is_enabled = true;             // else Maskwise claims no node
    std::string reason_against_fusions; // if empty, nodes are fused
    bool has_stable_optimizers = false; // MatmulTransposeFusion is disabled
    int threads = 1;
};

// The provider of one session. The factory's runtime and registry must outlive the provider.
class provider : public OrtEp {
public:
    provider(const runtime& api, OrtKernelRegistry* kernels, session_settings settings);

    // Shared with the provider's kernels, which may outlive the provider.
    const std::shared_ptr<session_facts>& session() const { return session_; }

private:
    void claim_nodes(const model_graph& graph, OrtEpGraphSupportInfo* support);
    // Returns the claimed nodes, and each Softmax that was reported.
    std::set<const node*> claim_fusions(const model_graph& graph, OrtEpGraphSupportInfo* support,
                                        rounding& exactness);
    void claim_node(const node& node, OrtEpGraphSupportInfo* support, rounding& exactness) const;
    bool should_claim(const node& node, OrtEpGraphSupportInfo* support, rounding& exactness) const;
    void report(std::string_view name, const std::string& subject, const std::string& why) const;
    OrtNodeComputeInfo* compile_fused(const OrtNode* node) const;

    const runtime& api_;
    OrtKernelRegistry* const kernels_;
    const session_settings settings_;
    const std::shared_ptr<session_facts> session_;
    // The claimed blocks, by the name of each block's output. A later graph may replace an entry.
    std::map<std::string, fused_block, std::less<>> fusions_;
};

} // namespace maskwise::ort
