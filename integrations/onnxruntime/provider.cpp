#include "provider.hpp"

#include "claims.hpp"

#include "base/verbose.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace maskwise::ort {
namespace {

std::string reason_to_refuse_alone(const node& where, rounding& rounds) {
    const node* const one[] = {&where};
    return !where.is_complete()        ? "no result"
           : !rounds.is_exact_for(one) ? rounds_otherwise
                                       : reason_to_refuse(where);
}

} // namespace

provider::provider(const runtime& with, OrtKernelRegistry* kernels, session_settings settings)
    : OrtEp{}, with_(with), kernels_(kernels), settings_(std::move(settings)),
      session_(std::make_shared<session_facts>()) {
    session_->threads = settings_.threads;
    ort_version_supported = api_version;
    GetName = [](const OrtEp*) noexcept { return provider_name; };
    GetCapability = [](OrtEp* own, const OrtGraph* graph, OrtEpGraphSupportInfo* support) noexcept {
        provider& self = *static_cast<provider*>(own);
        return guarded(self.with_,
                       [&] { self.claim_nodes(model_graph(self.with_, graph), support); });
    };
    GetKernelRegistry = [](OrtEp* own, const OrtKernelRegistry** found) noexcept {
        *found = static_cast<provider*>(own)->kernels_;
        return static_cast<OrtStatus*>(nullptr);
    };
    Compile = [](OrtEp* own, const OrtGraph**, const OrtNode** nodes, std::size_t count,
                 OrtNodeComputeInfo** made, OrtNode**) noexcept {
        const provider& self = *static_cast<provider*>(own);
        return guarded(self.with_, [&] {
            for (std::size_t i = 0; i < count; ++i) made[i] = self.compile_fused(nodes[i]);
        });
    };
    ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** made, std::size_t count) noexcept {
        for (std::size_t i = 0; i < count; ++i) release_fused_kernel(made[i]);
    };
}

// ONNX Runtime asks for each graph, those of If, Loop and Scan too, and again after changes of its
// own: then the nodes have their provider.
void provider::claim_nodes(const model_graph& graph, OrtEpGraphSupportInfo* support) {
    if (!settings_.is_enabled) return;
    // Then only those are kept that were claimed before.
    const bool is_broken = !settings_.has_stable_optimizers && breaks_transpose_fusion(graph);
    rounding rounds;
    std::set<const node*> seen;
    if (settings_.reason_against_fusions.empty() && !is_broken)
        seen = claim_fusions(graph, support, rounds);
    for (const node& each : graph.nodes()) {
        const bool is_ours = each.provider == provider_name, is_free = each.provider.empty();
        const bool has_kernel = each.is("Where") || is_attention(each);
        if (seen.contains(&each) || !(has_kernel || each.is("Softmax"))) continue;
        if (has_kernel && is_ours)
            check(with_.EpGraphSupportInfo_AddSingleNode(support, each.theirs));
        else if (is_free && is_broken)
            report(each.name, describe(each), ends_transpose_fusion);
        else if (is_free)
            claim_node(each, support, rounds);
    }
}

void provider::claim_node(const node& each, OrtEpGraphSupportInfo* support,
                          rounding& rounds) const {
    if (each.is("Softmax"))
        report(each.name, describe(each),
               settings_.reason_against_fusions.empty()
                   ? "not along the last dimension, or not in f32 or f16"
                   : settings_.reason_against_fusions);
    else if (wants(each, support, rounds))
        check(with_.EpGraphSupportInfo_AddSingleNode(support, each.theirs));
}

std::set<const node*> provider::claim_fusions(const model_graph& graph,
                                              OrtEpGraphSupportInfo* support, rounding& rounds) {
    std::set<const node*> seen;
    for (found_fusion& found : find_fusions(graph, rounds)) {
        report(found.form.name, found.text(), found.reason_against);
        std::ranges::copy_if(found.nodes, std::inserter(seen, seen.end()),
                             [](const node* each) { return each->is("Softmax"); });
        if (!found.reason_against.empty()) continue;
        std::vector<const OrtNode*> theirs;
        for (const node* const each : found.nodes) theirs.push_back(each->theirs);
        check(with_.EpGraphSupportInfo_AddNodesToFuse(support, theirs.data(), theirs.size(),
                                                      nullptr));
        seen.insert(found.nodes.begin(), found.nodes.end());
        fusions_.insert_or_assign(found.form.output, std::move(found.form));
    }
    return seen;
}

bool provider::wants(const node& each, OrtEpGraphSupportInfo* support, rounding& rounds) const {
    const OrtKernelDef* kernel = nullptr;
    check(with_.EpGraphSupportInfo_LookUpKernel(support, each.theirs, &kernel));
    const std::string why = kernel == nullptr  ? is_attention(each)
                                                     ? "no kernel for its kind, version and types"
                                                     : "no kernel for its types"
                            : each.is("Where") ? reason_to_refuse_alone(each, rounds)
                                               : reason_to_refuse_attention(each, rounds);
    report(each.name, describe(each), why);
    return why.empty();
}

void provider::report(std::string_view name, const std::string& what,
                      const std::string& why) const {
    if (settings_.is_verbose) print_decision(name, what, why);
}

// ONNX Runtime compiles the claims of a graph before it asks for those of the next, so that
// graphs may use one name for two values.
OrtNodeComputeInfo* provider::compile_fused(const OrtNode* node) const {
    const auto names = names_of(with_, node);
    const auto found = fusions_.find(names.outputs.at(0));
    if (found == fusions_.end()) throw error("a fused node that Maskwise did not claim");
    return make_fused_kernel(with_, names.inputs, found->second, session_);
}

} // namespace maskwise::ort
