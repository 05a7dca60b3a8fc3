#include "kernels.hpp"

#include "element_types.hpp"
#include "where_kernel.hpp"

#include <limits>
#include <vector>

namespace maskwise::ort {
namespace {

struct releaser {
    const runtime* with;
    void operator()(abi::kernel_def_builder* builder) const noexcept {
        with->ReleaseKernelDefBuilder(builder);
    }
    void operator()(abi::kernel_def* definition) const noexcept {
        with->ReleaseKernelDef(definition);
    }
};
using builder_pointer = std::unique_ptr<abi::kernel_def_builder, releaser>;
using definition_pointer = std::unique_ptr<abi::kernel_def, releaser>;

const abi::data_type* tensor_of(const runtime& with, abi::element_type element) {
    const abi::data_type* type = nullptr;
    check(with.GetTensorDataType(element, &type));
    return type;
}

// B and T are the names that ONNX's definition of Where gives to its types.
void constrain_types(const runtime& with, abi::kernel_def_builder* builder) {
    const abi::data_type* const boolean = tensor_of(with, abi::element_bool);
    check(with.KernelDefBuilder_AddTypeConstraint(builder, "B", &boolean, 1));
    std::vector<const abi::data_type*> types;
    types.reserve(element_types.size());
    for (const auto& [element, type] : element_types) types.push_back(tensor_of(with, element));
    check(with.KernelDefBuilder_AddTypeConstraint(builder, "T", types.data(), types.size()));
}

definition_pointer define_where(const runtime& with, int first, int last) {
    abi::kernel_def_builder* made = nullptr;
    check(with.CreateKernelDefBuilder(&made));
    const builder_pointer builder(made, {&with});
    check(with.KernelDefBuilder_SetOperatorType(made, "Where"));
    check(with.KernelDefBuilder_SetDomain(made, ""));
    check(with.KernelDefBuilder_SetSinceVersion(made, first, last));
    check(with.KernelDefBuilder_SetExecutionProvider(made, provider_name));
    constrain_types(with, made);
    // The output may be written over X or over Y where that has its shape and no other reader.
    constexpr int inputs[] = {1, 2}, outputs[] = {0, 0};
    check(with.KernelDefBuilder_AddInputOutputMutableAliases(made, inputs, outputs, 2));
    abi::kernel_def* definition = nullptr;
    check(with.KernelDefBuilder_Build(made, &definition));
    return {definition, {&with}};
}

abi::status* create_where(void* state, const abi::kernel_info* info, abi::kernel_impl** kernel) {
    const auto& with = *static_cast<const runtime*>(state);
    return guarded(with, [&] { *kernel = make_where_kernel(with, info); });
}

} // namespace

registry_pointer make_kernel_registry(const runtime& with) {
    abi::kernel_registry* made = nullptr;
    check(with.CreateKernelRegistry(&made));
    registry_pointer registry(made, {&with});
    constexpr std::pair<int, int> versions[] = {{9, 15}, {16, std::numeric_limits<int>::max()}};
    for (const auto& [first, last] : versions) {
        const definition_pointer definition = define_where(with, first, last);
        check(with.KernelRegistry_AddKernel(made, definition.get(), create_where,
                                            const_cast<runtime*>(&with)));
    }
    return registry;
}

} // namespace maskwise::ort
