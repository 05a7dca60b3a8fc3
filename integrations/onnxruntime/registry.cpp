#include "registry.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace maskwise::ort {
namespace {

const OrtDataType* tensor_of(const runtime& with, data_type type) {
    const auto* const found = std::ranges::find(
        element_types, type, &std::pair<ONNXTensorElementDataType, data_type>::second);
    const OrtDataType* tensor = nullptr;
    check(with.GetTensorDataType(found->first, &tensor));
    return tensor;
}

} // namespace

void constrain_type(const runtime& with, OrtKernelDefBuilder* builder, const char* name,
                    std::span<const data_type> types) {
    std::vector<const OrtDataType*> tensors;
    for (const data_type type : types) tensors.push_back(tensor_of(with, type));
    check(with.KernelDefBuilder_AddTypeConstraint(builder, name, tensors.data(), tensors.size()));
}

void add_kernel(const runtime& with, OrtKernelRegistry* to, const kernel_form& form,
                void (*configure)(const runtime&, OrtKernelDefBuilder*),
                OrtKernelCreateFunc create) {
    OrtKernelDefBuilder* made = nullptr;
    check(with.CreateKernelDefBuilder(&made));
    const owned<OrtKernelDefBuilder> builder(made, with.ReleaseKernelDefBuilder);
    check(with.KernelDefBuilder_SetOperatorType(made, form.type));
    check(with.KernelDefBuilder_SetDomain(made, form.domain));
    check(with.KernelDefBuilder_SetSinceVersion(made, form.first, form.last));
    check(with.KernelDefBuilder_SetExecutionProvider(made, provider_name));
    configure(with, made);
    OrtKernelDef* built = nullptr;
    check(with.KernelDefBuilder_Build(made, &built));
    const owned<OrtKernelDef> definition(built, with.ReleaseKernelDef);
    check(with.KernelRegistry_AddKernel(to, built, create, const_cast<runtime*>(&with)));
}

owned<OrtKernelRegistry> make_kernel_registry(const runtime& with) {
    OrtKernelRegistry* made = nullptr;
    check(with.CreateKernelRegistry(&made));
    owned<OrtKernelRegistry> registry(made, with.ReleaseKernelRegistry);
    add_where_kernels(with, made);
    add_attention_kernels(with, made);
    return registry;
}

} // namespace maskwise::ort
