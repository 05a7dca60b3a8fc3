#pragma once

#include "operation.hpp"

#include "fusion/compiled_block.hpp"

#include <memory>
#include <vector>

namespace maskwise::openvino {

// SoftMax over the last dimension of masked scores in one pass: inputs are the scores and the
// operands of the steps. Scores have the shape of the result, operands broadcast to it; a condition
// is boolean, all else of one type, f32, bf16 or f16, and computed in f32.
class masked_softmax : public operation {
public:
    OPENVINO_OP("MaskedSoftmax", "maskwise")

    masked_softmax() = default;
    // Steps change a row, combine it with an operand or select; none has constants. Throws
    // ov::NodeValidationFailure for types and shapes that do not fit.
    masked_softmax(const ov::OutputVector& inputs, std::vector<row_step> steps);

    void validate_and_infer_types() override;
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override;
    bool visit_attributes(ov::AttributeVisitor& visitor) override;

private:
    void run(const ov::TensorVector& inputs, ov::Tensor& output) const override;
    bool is_cond(std::size_t input) const;

    std::vector<row_step> steps_;
    std::shared_ptr<fusion::recent_blocks> compiled_ = std::make_shared<fusion::recent_blocks>();
};

} // namespace maskwise::openvino
