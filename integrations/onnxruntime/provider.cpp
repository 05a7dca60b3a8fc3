#include "provider.hpp"

#include "claims.hpp"

#include "base/verbose.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace maskwise::ort {
namespace {

std::string reason_to_refuse_alone(const node& where, rounding& exactness) {
    const node* const nodes[] = {&where};
    return !where.is_complete()             ? "no result"
           : !exactness.is_exact_for(nodes) ? rounds_differently
                                            : reason_to_refuse(where);
}

} // namespace

provider::provider(const runtime& api, OrtKernelRegistry* kernels, session_settings settings)
    : OrtEp{}, api_(api), kernels_(kernels), settings_(std::move(settings)),
      session_(std::make_shared<session_facts>()) {
    session_->threads = settings_.threads;
    ort_version_supported = api_version;
    GetName = [](const OrtEp*) noexcept { return provider_name; };
    GetCapability = [](OrtEp* base, const OrtGraph* graph,
                       OrtEpGraphSupportInfo* support) noexcept {
        provider& self = *static_cast<provider*>(base);
        return guarded(self.api_,
                       [&] { self.claim_nodes(model_graph(self.api_, graph), support); });
    };
    GetKernelRegistry = [](OrtEp* base, const OrtKernelRegistry** result) noexcept {
        *result = static_cast<provider*>(base)->kernels_;
        return static_cast<OrtStatus*>(nullptr);
    };
    Compile = [](OrtEp* base, const OrtGraph**, const OrtNode** nodes, std::size_t count,
                 OrtNodeComputeInfo** result, OrtNode**) noexcept {
        const provider& self = *static_cast<provider*>(base);
        return guarded(self.api_, [&] {
            for (std::size_t i = 0; i < count; ++i) result[i] = self.compile_fused(nodes[i]);
        });
    };
    ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** result, std::size_t count) noexcept {
        for (std::size_t i = 0; i < count; ++i) release_fused_kernel(result[i]);
    };
}

// ONNX Runtime calls this function for each graph, also for graphs inside If, Loop and Scan, and
// again after a change of the graph. In a repeated call, node::provider is set for claimed nodes.
void provider::claim_nodes(const model_graph& graph, OrtEpGraphSupportInfo* support) {
    if (!settings_.is_enabled) return;
    // If the graph triggers the bug of MatmulTransposeFusion (see claims.hpp), this call only
    // repeats the claims of earlier calls.
    const bool is_broken = !settings_.has_stable_optimizers && breaks_transpose_fusion(graph);
    rounding exactness;
    std::set<const node*> seen;
    if (settings_.reason_against_fusions.empty() && !is_broken)
        seen = claim_fusions(graph, support, exactness);
    for (const node& node : graph.nodes()) {
        const bool is_ours = node.provider == provider_name, is_free = node.provider.empty();
        const bool has_kernel = node.is("Where") || is_attention(node);
        if (seen.contains(&node) || !(has_kernel || node.is("Softmax"))) continue;
        if (has_kernel && is_ours)
            check(api_.EpGraphSupportInfo_AddSingleNode(support, node.handle));
        else if (is_free && is_broken)
            report(node.name, describe(node), ends_transpose_fusion);
        else if (is_free)
            claim_node(node, support, exactness);
    }
}

void provider::claim_node(const node& node, OrtEpGraphSupportInfo* support,
                          rounding& exactness) const {
    if (node.is("Softmax"))
        report(node.name, describe(node),
               settings_.reason_against_fusions.empty()
                   ? "not along the last dimension, or not in f32 or f16"
                   : settings_.reason_against_fusions);
    else if (should_claim(node, support, exactness))
        check(api_.EpGraphSupportInfo_AddSingleNode(support, node.handle));
}

std::set<const node*> provider::claim_fusions(const model_graph& graph,
                                              OrtEpGraphSupportInfo* support, rounding& exactness) {
    std::set<const node*> seen;
    for (fusion_match& match : find_fusions(graph, exactness)) {
        report(match.fused.name, match.text(), match.reason_against);
        std::ranges::copy_if(match.nodes, std::inserter(seen, seen.end()),
                             [](const node* candidate) { return candidate->is("Softmax"); });
        if (!match.reason_against.empty()) continue;
        std::vector<const OrtNode*> handles;
        for (const node* const node : match.nodes) handles.push_back(node->handle);
        check(api_.EpGraphSupportInfo_AddNodesToFuse(support, handles.data(), handles.size(),
                                                     nullptr));
        seen.insert(match.nodes.begin(), match.nodes.end());
        fusions_.insert_or_assign(match.fused.output, std::move(match.fused));
    }
    return seen;
}

bool provider::should_claim(const node& node, OrtEpGraphSupportInfo* support,
                            rounding& exactness) const {
    const OrtKernelDef* kernel = nullptr;
    check(api_.EpGraphSupportInfo_LookUpKernel(support, node.handle, &kernel));
    const std::string why = kernel == nullptr  ? is_attention(node)
                                                     ? "no kernel for its kind, version and types"
                                                     : "no kernel for its types"
                            : node.is("Where") ? reason_to_refuse_alone(node, exactness)
                                               : reason_to_refuse_attention(node, exactness);
    report(node.name, describe(node), why);
    return why.empty();
}

void provider::report(std::string_view name, const std::string& subject,
                      const std::string& why) const {
    if (settings_.is_verbose) print_decision(name, subject, why);
}

// The output's name identifies the block. Two graphs may use one name for different values, but
// ONNX Runtime compiles the claims of a graph before it calls claim_nodes for the next graph.
OrtNodeComputeInfo* provider::compile_fused(const OrtNode* node) const {
    const auto names = names_of(api_, node);
    const auto entry = fusions_.find(names.outputs.at(0));
    if (entry == fusions_.end()) throw error("Maskwise did not claim this fused node");
    return make_fused_kernel(api_, names.inputs, entry->second, session_);
}

} // namespace maskwise::ort
