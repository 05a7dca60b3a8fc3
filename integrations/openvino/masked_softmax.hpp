#pragma once

#include "fusion/compiled_block.hpp"

#include <openvino/op/op.hpp>

#include <memory>
#include <string>

namespace maskwise::openvino {

// SoftMax over the last dimension of scores where cond is true, or false, and of fill elsewhere, in
// one pass: inputs cond, scores, fill and, where scores are scaled, the factor. scores have the
// shape of the result, the others broadcast to it; scores, fill and factor are of one type, f32,
// bf16 or f16, and computed in f32. For any number of threads at once.
class masked_softmax : public ov::op::Op {
public:
    OPENVINO_OP("MaskedSoftmax", "maskwise")

    masked_softmax() = default;
    // scaling is none, multiply or divide. Throws ov::NodeValidationFailure for types and shapes
    // that do not fit.
    masked_softmax(const ov::OutputVector& inputs, bool cond_keeps, std::string scaling);

    void validate_and_infer_types() override;
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override;
    bool visit_attributes(ov::AttributeVisitor& visitor) override;

    bool has_evaluate() const override { return true; }
    // Throws ov::Exception with Maskwise's reason.
    bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override;

private:
    void run(const ov::TensorVector& inputs, ov::Tensor& output) const;

    bool cond_keeps_ = true;
    std::string scaling_ = "none";
    std::shared_ptr<fusion::recent_blocks> compiled_ = std::make_shared<fusion::recent_blocks>();
};

} // namespace maskwise::openvino
