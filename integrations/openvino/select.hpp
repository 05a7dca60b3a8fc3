#pragma once

#include "operation.hpp"

#include <openvino/op/util/attr_types.hpp>

namespace maskwise::openvino {

// Select-1 with inputs cond, then and else, and the attribute auto_broadcast (none or numpy). As in
// OpenVINO, numpy broadcasts all three inputs to each other. cond is boolean, or u8 after the CPU
// plugin's conversion. Any byte but 0 is true.
class select : public operation {
public:
    OPENVINO_OP("Select", "maskwise")

    select() = default;
    // Throws ov::NodeValidationFailure for wrong types and shapes, and for pdpd.
    select(const ov::OutputVector& inputs, const ov::op::AutoBroadcastSpec& broadcast);

    void validate_and_infer_types() override;
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override;
    bool visit_attributes(ov::AttributeVisitor& visitor) override;
    const ov::op::AutoBroadcastSpec& get_autob() const override { return broadcast_; }

private:
    void run(const ov::TensorVector& inputs, ov::Tensor& output) const override;
    ov::element::Type merged_type() const;
    ov::PartialShape merged_shape() const;

    ov::op::AutoBroadcastSpec broadcast_ = ov::op::AutoBroadcastType::NUMPY;
};

} // namespace maskwise::openvino
