#include "provider.hpp"

#include "claims.hpp"
#include "find_fusions.hpp"
#include "graph_facts.hpp"
#include "transpose_fusion.hpp"

#include "base/verbose.hpp"

namespace maskwise::ort {

provider::provider(const runtime& with, const abi::kernel_registry* kernels,
                   session_settings settings)
    : abi::layout::ep{}, with_(with), kernels_(kernels), settings_(settings),
      session_(std::make_shared<session_facts>(settings.threads)) {
    ort_version_supported = abi::api_version;
    GetName = [](const abi::ep*) noexcept { return provider_name; };
    GetCapability = get_capability;
    GetKernelRegistry = [](abi::ep* own, const abi::kernel_registry** found) noexcept {
        *found = static_cast<provider*>(own)->kernels_;
        return static_cast<abi::status*>(nullptr);
    };
    Compile = compile_fused;
    ReleaseNodeComputeInfos = [](abi::ep*, abi::compute_info** made, std::size_t count) noexcept {
        for (std::size_t i = 0; i < count; ++i) release_fused_kernel(made[i]);
    };
}

abi::status* provider::get_capability(abi::ep* own, const abi::graph* graph,
                                      abi::support_info* support) noexcept {
    provider& self = *static_cast<provider*>(own);
    return guarded(self.with_, [&] { self.claim_nodes(graph, support); });
}

// ONNX Runtime asks for each graph, those of If, Loop and Scan too, and again after changes of its
// own: then the nodes have their provider.
void provider::claim_nodes(const abi::graph* graph, abi::support_info* support) {
    if (!settings_.has_stable_optimizers && breaks_transpose_fusion(with_, graph))
        return keep_claims(graph, support);
    rounding rounds(with_);
    const auto fused = claim_fusions(graph, support, rounds);
    for (const abi::node* const node : nodes_of(with_, graph)) {
        if (!is_where(with_, node) || fused.contains(node)) continue;
        const std::string_view owner = provider_of(with_, node);
        if (owner == provider_name || (owner.empty() && wants(node, support, rounds)))
            check(with_.EpGraphSupportInfo_AddSingleNode(support, node));
    }
}

// Only those that were made before.
void provider::keep_claims(const abi::graph* graph, abi::support_info* support) const {
    for (const abi::node* const node : nodes_of(with_, graph)) {
        const bool selects = is_where(with_, node);
        const std::string_view owner = provider_of(with_, node);
        if (selects && owner == provider_name)
            check(with_.EpGraphSupportInfo_AddSingleNode(support, node));
        else if (owner.empty() && (selects || is_operator(with_, node, "Softmax")))
            report(node, selects ? describe_where(with_, node) : "Softmax", ends_transpose_fusion);
    }
}

// Nodes that another provider has, or that are fused already, are no longer free.
std::set<const abi::node*> provider::claim_fusions(const abi::graph* graph,
                                                   abi::support_info* support, rounding& rounds) {
    std::set<const abi::node*> taken;
    if (!settings_.fuses) return taken;
    const auto is_free = [&](const abi::node* node) { return provider_of(with_, node).empty(); };
    for (found_fusion& found : find_fusions(with_, graph, is_free, rounds)) {
        report(found.soft_max, found.text(), found.reason_against);
        if (!found.reason_against.empty()) continue;
        check(with_.EpGraphSupportInfo_AddNodesToFuse(support, found.nodes.data(),
                                                      found.nodes.size(), nullptr));
        taken.insert(found.nodes.begin(), found.nodes.end());
        fusions_.insert_or_assign(found.form.output, std::move(found.form));
    }
    return taken;
}

bool provider::wants(const abi::node* node, abi::support_info* support, rounding& rounds) const {
    const abi::kernel_def* kernel = nullptr;
    check(with_.EpGraphSupportInfo_LookUpKernel(support, node, &kernel));
    const std::string why = kernel == nullptr                   ? "no kernel for its types"
                            : !is_complete(with_, node)         ? "no result"
                            : !rounds.are_exact_for({&node, 1}) ? rounds_otherwise
                                                                : reason_to_refuse(with_, node);
    report(node, describe_where(with_, node), why);
    return why.empty();
}

void provider::report(const abi::node* node, const std::string& what,
                      const std::string& why) const {
    if (!settings_.is_verbose) return;
    print_verbose(std::string(why.empty() ? "claim," : "refuse,") +
                  std::string(name_of(with_, node)) + ',' + what + (why.empty() ? "" : ",") + why);
}

// ONNX Runtime compiles the claims of a graph before it asks for those of the next, so that
// graphs may use one name for two values.
abi::status* provider::compile_fused(abi::ep* own, const abi::graph**, const abi::node** nodes,
                                     std::size_t count, abi::compute_info** kernels,
                                     abi::node**) noexcept {
    provider& self = *static_cast<provider*>(own);
    return guarded(self.with_, [&] {
        for (std::size_t i = 0; i < count; ++i) {
            const auto found =
                self.fusions_.find(name_of(self.with_, output_of(self.with_, nodes[i])));
            if (found == self.fusions_.end())
                throw error("a fused node that Maskwise did not claim");
            kernels[i] = make_fused_kernel(self.with_, nodes[i], found->second, self.session_);
        }
    });
}

} // namespace maskwise::ort
