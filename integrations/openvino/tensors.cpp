#include "tensors.hpp"

#include "conversions.hpp"

namespace maskwise::openvino {

tensor_desc describe(const ov::Tensor& tensor) {
    tensor_desc desc{type_of(tensor.get_element_type()), {}};
    for (const std::size_t extent : tensor.get_shape())
        desc.extents.push_back(static_cast<std::int64_t>(extent));
    if (tensor.is_continuous()) return desc;
    for (const std::size_t stride : tensor.get_strides())
        desc.strides_bytes.push_back(static_cast<std::int64_t>(stride));
    return desc;
}

tensor_desc describe_cond(const ov::Tensor& tensor) {
    tensor_desc desc = describe(tensor);
    if (desc.type == data_type::u8) desc.type = data_type::boolean;
    return desc;
}

void bypass_conversion_of_cond(ov::Node& node, std::size_t input) {
    if (converts(*node.get_input_node_ptr(input), ov::element::boolean, ov::element::u8))
        bypass(node.input(input));
}

void require_cond(const ov::Node& node, std::size_t input) {
    const ov::element::Type cond = node.get_input_element_type(input);
    NODE_VALIDATION_CHECK(
        &node, cond.is_dynamic() || cond == ov::element::boolean || cond == ov::element::u8,
        "Maskwise: cond is ", cond, ", expected boolean");
}

} // namespace maskwise::openvino
