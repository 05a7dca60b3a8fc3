#include "registry.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace maskwise::ort {
namespace {

const OrtDataType* tensor_of(const runtime& api, data_type type) {
    const auto* const entry = std::ranges::find(
        element_types, type, &std::pair<ONNXTensorElementDataType, data_type>::second);
    const OrtDataType* tensor = nullptr;
    check(api.GetTensorDataType(entry->first, &tensor));
    return tensor;
}

} // namespace

void constrain_type(const runtime& api, OrtKernelDefBuilder* builder, const char* name,
                    std::span<const data_type> types) {
    std::vector<const OrtDataType*> tensors;
    for (const data_type type : types) tensors.push_back(tensor_of(api, type));
    check(api.KernelDefBuilder_AddTypeConstraint(builder, name, tensors.data(), tensors.size()));
}

void add_kernel(const runtime& api, OrtKernelRegistry* registry, const kernel_signature& signature,
                void (*configure)(const runtime&, OrtKernelDefBuilder*),
                OrtKernelCreateFunc create) {
    OrtKernelDefBuilder* builder = nullptr;
    check(api.CreateKernelDefBuilder(&builder));
    const owned<OrtKernelDefBuilder> builder_owner(builder, api.ReleaseKernelDefBuilder);
    check(api.KernelDefBuilder_SetOperatorType(builder, signature.type));
    check(api.KernelDefBuilder_SetDomain(builder, signature.domain));
    check(api.KernelDefBuilder_SetSinceVersion(builder, signature.first, signature.last));
    check(api.KernelDefBuilder_SetExecutionProvider(builder, provider_name));
    configure(api, builder);
    OrtKernelDef* built = nullptr;
    check(api.KernelDefBuilder_Build(builder, &built));
    const owned<OrtKernelDef> definition(built, api.ReleaseKernelDef);
    check(api.KernelRegistry_AddKernel(registry, built, create, const_cast<runtime*>(&api)));
}

owned<OrtKernelRegistry> make_kernel_registry(const runtime& api) {
    OrtKernelRegistry* registry = nullptr;
    check(api.CreateKernelRegistry(&registry));
    owned<OrtKernelRegistry> owner(registry, api.ReleaseKernelRegistry);
    add_where_kernels(api, registry);
    add_attention_kernels(api, registry);
    return owner;
}

} // namespace maskwise::ort
