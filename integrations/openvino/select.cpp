#include "select.hpp"

namespace maskwise::openvino {

using broadcast_spec = ov::op::AutoBroadcastSpec;
using broadcast_type = ov::op::AutoBroadcastType;

select::select(const ov::OutputVector& inputs, const broadcast_spec& broadcast)
    : operation(inputs), broadcast_(broadcast) {
    constructor_validate_and_infer_types();
}

void select::validate_and_infer_types() {
    NODE_VALIDATION_CHECK(this, get_input_size() == 3, "Maskwise: ", get_input_size(),
                          " inputs, expected cond, then and else");
    NODE_VALIDATION_CHECK(this, broadcast_.m_type != broadcast_type::PDPD,
                          "Maskwise: auto_broadcast is pdpd, expected none or numpy");
    accept_cond(0);
    set_output_type(0, merged_type(), merged_shape());
}

ov::element::Type select::merged_type() const {
    const auto src_0 = get_input_element_type(1), src_1 = get_input_element_type(2);
    ov::element::Type type;
    NODE_VALIDATION_CHECK(this, ov::element::Type::merge(type, src_0, src_1), "Maskwise: then is ",
                          src_0, ", else is ", src_1);
    NODE_VALIDATION_CHECK(this, type.is_dynamic() || type_of(type) != data_type::undef,
                          "Maskwise: then and else are ", type,
                          ", which Maskwise does not support");
    return type;
}

ov::PartialShape select::merged_shape() const {
    ov::PartialShape shape = get_input_partial_shape(2);
    for (const std::size_t input : {1U, 0U}) {
        const ov::PartialShape& other = get_input_partial_shape(input);
        const bool fits = broadcast_ == broadcast_type::NONE
                              ? ov::PartialShape::merge_into(shape, other)
                              : ov::PartialShape::broadcast_merge_into(shape, other, broadcast_);
        NODE_VALIDATION_CHECK(this, fits, "Maskwise: shapes do not broadcast: cond is ",
                              get_input_partial_shape(0), ", then is ", get_input_partial_shape(1),
                              ", else is ", get_input_partial_shape(2));
    }
    return shape;
}

std::shared_ptr<ov::Node> select::clone_with_new_inputs(const ov::OutputVector& inputs) const {
    return std::make_shared<select>(inputs, broadcast_);
}

bool select::visit_attributes(ov::AttributeVisitor& visitor) {
    visitor.on_attribute("auto_broadcast", broadcast_);
    return true;
}

void select::run(const ov::TensorVector& inputs, ov::Tensor& output) const {
    const bool is_none = broadcast_ == broadcast_type::NONE;
    // Select-1 forbids a cond larger than then and else, but OpenVINO and ONNX accept such a cond
    // with numpy broadcasting.
    const dialect form = is_none ? dialect::openvino_select_1 : dialect::onnx_where_16;
    const auto_broadcast rule = is_none ? auto_broadcast::none : auto_broadcast::numpy;
    select_desc desc{.cond = describe_cond(inputs[0]),
                     .src_0 = describe(inputs[1]),
                     .src_1 = describe(inputs[2])};
    plan compiled = compile(form, desc, rule);
    const dims& extents = compiled.dst().extents;
    if (const ov::Shape shape(extents.begin(), extents.end()); output.get_shape() != shape)
        output.set_shape(shape);
    if (!output.is_continuous()) {
        desc.dst = describe(output);
        compiled = compile(form, desc, rule);
    }
    compiled.execute(
        {.cond = inputs[0].data(), .src_0 = inputs[1].data(), .src_1 = inputs[2].data()},
        output.data());
}

} // namespace maskwise::openvino
