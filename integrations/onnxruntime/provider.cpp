#include "provider.hpp"

#include "claims.hpp"
#include "graph_facts.hpp"

#include "base/verbose.hpp"

namespace maskwise::ort {

provider::provider(const runtime& with, const abi::kernel_registry* kernels, bool is_verbose)
    : abi::layout::ep{}, with_(with), kernels_(kernels), is_verbose_(is_verbose) {
    ort_version_supported = abi::api_version;
    GetName = [](const abi::ep*) noexcept { return provider_name; };
    GetCapability = get_capability;
    GetKernelRegistry = [](abi::ep* own, const abi::kernel_registry** found) noexcept {
        *found = static_cast<provider*>(own)->kernels_;
        return static_cast<abi::status*>(nullptr);
    };
}

abi::status* provider::get_capability(abi::ep* own, const abi::graph* graph,
                                      abi::support_info* support) noexcept {
    const provider& self = *static_cast<provider*>(own);
    return guarded(self.with_, [&] { self.claim_nodes(graph, support); });
}

// ONNX Runtime asks for each graph, those of If, Loop and Scan too, and again after changes of its
// own: then the nodes have their provider.
void provider::claim_nodes(const abi::graph* graph, abi::support_info* support) const {
    for (const abi::node* const node : nodes_of(with_, graph)) {
        if (!is_where(with_, node)) continue;
        const std::string_view owner = provider_of(with_, node);
        if (owner == provider_name || (owner.empty() && wants(node, support)))
            check(with_.EpGraphSupportInfo_AddSingleNode(support, node));
    }
}

bool provider::wants(const abi::node* node, abi::support_info* support) const {
    const abi::kernel_def* kernel = nullptr;
    check(with_.EpGraphSupportInfo_LookUpKernel(support, node, &kernel));
    const std::string why =
        kernel == nullptr ? "no kernel for its types" : reason_to_refuse(with_, node);
    report(why.empty() ? "claim" : "refuse", node, why);
    return why.empty();
}

void provider::report(const char* verdict, const abi::node* node, const std::string& why) const {
    if (!is_verbose_) return;
    print_verbose(std::string(verdict) + ',' + std::string(name_of(with_, node)) + ',' +
                  describe_where(with_, node) + (why.empty() ? "" : ",") + why);
}

} // namespace maskwise::ort
