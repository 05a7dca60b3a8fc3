#pragma once

#include "kernels.hpp"

namespace maskwise::ort {

// The provider of one session; it must not outlive its factory's runtime and registry.
class provider : public abi::layout::ep {
public:
    provider(const runtime& with, const abi::kernel_registry* kernels, bool is_verbose);

private:
    static abi::status* get_capability(abi::ep* own, const abi::graph* graph,
                                       abi::support_info* support) noexcept;
    void claim_nodes(const abi::graph* graph, abi::support_info* support) const;
    bool wants(const abi::node* node, abi::support_info* support) const;
    void report(const char* verdict, const abi::node* node, const std::string& why) const;

    const runtime& with_;
    const abi::kernel_registry* kernels_;
    bool is_verbose_;
};

} // namespace maskwise::ort
