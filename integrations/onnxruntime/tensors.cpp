#include "tensors.hpp"

#include "element_types.hpp"

namespace maskwise::ort {

input_tensor read_input(const runtime& with, const abi::kernel_context* context,
                        std::size_t index) {
    input_tensor input{};
    check(with.KernelContext_GetInput(context, index, &input.value));
    abi::element_type element{};
    const std::int64_t* extents = nullptr;
    std::size_t rank = 0;
    check(with.GetTensorElementTypeAndShapeDataReference(input.value, &element, &extents, &rank));
    input.desc.type = type_of(element);
    input.desc.extents = dims(std::span(extents, rank));
    if (input.desc.type != data_type::string) check(with.GetTensorData(input.value, &input.data));
    return input;
}

abi::value* make_output(const runtime& with, abi::kernel_context* context, const dims& extents) {
    abi::value* output = nullptr;
    check(with.KernelContext_GetOutput(context, 0, extents.begin(),
                                       static_cast<std::size_t>(extents.rank()), &output));
    return output;
}

} // namespace maskwise::ort
