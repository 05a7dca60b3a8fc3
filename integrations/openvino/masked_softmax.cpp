#include "masked_softmax.hpp"

#include "tensors.hpp"

#include <utility>
#include <vector>

namespace maskwise::openvino {
namespace {

enum input : std::size_t { cond, scores, fill, factor };

fusion::block block_of(bool cond_keeps, const std::string& scaling) {
    fusion::block made;
    made.rows.soft_max.emplace();
    if (scaling != "none") {
        const auto op = scaling == "divide" ? row_operator::divide : row_operator::multiply;
        made.rows.steps.emplace_back(row_combine{op, 2});
    }
    const auto op = cond_keeps ? row_operator::select_kept : row_operator::select_masked;
    made.rows.steps.emplace_back(row_select{op, 0, 1});
    return made;
}

void append(fusion::recent_blocks::shapes& to, const tensor_desc& desc) {
    to.push_back(desc.extents.rank());
    to.insert(to.end(), desc.extents.begin(), desc.extents.end());
    to.insert(to.end(), desc.strides_bytes.begin(), desc.strides_bytes.end());
}

} // namespace

masked_softmax::masked_softmax(const ov::OutputVector& inputs, bool cond_keeps, std::string scaling)
    : Op(inputs), cond_keeps_(cond_keeps), scaling_(std::move(scaling)) {
    constructor_validate_and_infer_types();
}

void masked_softmax::validate_and_infer_types() {
    const bool is_scaled = scaling_ != "none";
    NODE_VALIDATION_CHECK(this, !is_scaled || scaling_ == "multiply" || scaling_ == "divide",
                          "Maskwise: scaling is ", scaling_, ", expected none, multiply or divide");
    NODE_VALIDATION_CHECK(this, get_input_size() == (is_scaled ? 4 : 3),
                          "Maskwise: ", get_input_size(), " inputs with scaling ", scaling_);
    bypass_conversion_of_cond(*this, cond);
    require_cond(*this, cond);
    const ov::PartialShape& shape = get_input_partial_shape(scores);
    ov::element::Type type = get_input_element_type(scores);
    for (std::size_t i = fill; i < get_input_size(); ++i)
        NODE_VALIDATION_CHECK(this, ov::element::Type::merge(type, type, get_input_element_type(i)),
                              "Maskwise: scores are ", type, ", input ", i, " is ",
                              get_input_element_type(i));
    for (std::size_t i = 0; i < get_input_size(); ++i) {
        ov::PartialShape merged = shape;
        const ov::PartialShape& other = get_input_partial_shape(i);
        NODE_VALIDATION_CHECK(this,
                              ov::PartialShape::broadcast_merge_into(
                                  merged, other, ov::op::AutoBroadcastType::NUMPY) &&
                                  merged.compatible(shape),
                              "Maskwise: input ", i, " does not broadcast to scores: ", other,
                              ", scores are ", shape);
    }
    set_output_type(0, type, shape);
}

std::shared_ptr<ov::Node>
masked_softmax::clone_with_new_inputs(const ov::OutputVector& inputs) const {
    return std::make_shared<masked_softmax>(inputs, cond_keeps_, scaling_);
}

bool masked_softmax::visit_attributes(ov::AttributeVisitor& visitor) {
    visitor.on_attribute("cond_keeps", cond_keeps_);
    visitor.on_attribute("scaling", scaling_);
    return true;
}

void masked_softmax::run(const ov::TensorVector& inputs, ov::Tensor& output) const {
    output.set_shape(inputs[scores].get_shape());
    std::vector<tensor_desc> descs{describe(inputs[scores]), describe_cond(inputs[cond])};
    std::vector<const void*> addresses{inputs[scores].data(), inputs[cond].data()};
    for (std::size_t i = fill; i < inputs.size(); ++i) {
        descs.push_back(describe(inputs[i]));
        addresses.push_back(inputs[i].data());
    }
    const tensor_desc dst = describe(output);
    fusion::recent_blocks::shapes shapes;
    for (const tensor_desc& desc : descs) append(shapes, desc);
    append(shapes, dst);
    const auto compiled = compiled_->find(
        shapes, [&] { return fusion::compile(block_of(cond_keeps_, scaling_), descs, dst); });
    fusion::scratch_pool none;
    compiled->run(addresses, output.data(), nullptr, none);
}

bool masked_softmax::evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const {
    try {
        run(inputs, outputs[0]);
    } catch (const error& refused) {
        OPENVINO_THROW("Maskwise: ", get_friendly_name(), ": ", refused.what());
    }
    return true;
}

} // namespace maskwise::openvino
