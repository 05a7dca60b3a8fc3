#include "masked_softmax.hpp"

#include "tensors.hpp"

#include "base/cache.hpp"
#include "exec/run_rows.hpp"

#include <utility>

namespace maskwise::openvino {
namespace {

enum input : std::size_t { cond, scores, fill, factor };

// Rows are run by strides, so these are written out.
tensor_desc with_strides(const tensor_desc& desc) {
    return desc.strides_bytes.empty() ? dense_desc(desc.type, desc.extents) : desc;
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
    row_desc desc;
    desc.scores = with_strides(describe(inputs[scores]));
    desc.result = with_strides(describe(output));
    desc.operands = {with_strides(describe_cond(inputs[cond])),
                     with_strides(describe(inputs[fill]))};
    std::vector<const void*> operands{inputs[cond].data(), inputs[fill].data()};
    if (scaling_ != "none") {
        desc.operands.push_back(with_strides(describe(inputs[factor])));
        operands.push_back(inputs[factor].data());
        const auto op = scaling_ == "divide" ? row_operator::divide : row_operator::multiply;
        desc.steps.emplace_back(row_combine{op, 2});
    }
    const auto op = cond_keeps_ ? row_operator::select_kept : row_operator::select_masked;
    desc.steps.emplace_back(row_select{op, 0, 1});
    desc.soft_max.emplace();
    const row_plan plan = make_row_plan(desc, active_isa(), stream_threshold_bytes());
    run_rows(plan, {inputs[scores].data(), output.data(), operands});
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
