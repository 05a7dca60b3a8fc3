#include "operation.hpp"

#include <openvino/op/convert.hpp>

namespace maskwise::openvino {
namespace {

bool converts_boolean_to_u8(const ov::Node& node) {
    return ov::is_type<ov::op::v0::Convert>(&node) &&
           node.get_input_element_type(0) == ov::element::boolean &&
           node.get_output_element_type(0) == ov::element::u8;
}

} // namespace

bool operation::evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const {
    try {
        run(inputs, outputs[0]);
    } catch (const error& refused) {
        OPENVINO_THROW("Maskwise: ", get_friendly_name(), ": ", refused.what());
    }
    return true;
}

void operation::accept_cond(std::size_t number) {
    const ov::Node& producer = *get_input_node_ptr(number);
    if (converts_boolean_to_u8(producer))
        input(number).replace_source_output(producer.input_value(0));
    const ov::element::Type cond = get_input_element_type(number);
    NODE_VALIDATION_CHECK(
        this, cond.is_dynamic() || cond == ov::element::boolean || cond == ov::element::u8,
        "Maskwise: cond is ", cond, ", expected boolean");
}

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

} // namespace maskwise::openvino
