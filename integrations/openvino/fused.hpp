#pragma once

#include "operation.hpp"

#include "fusion/compiled_block.hpp"

#include <memory>
#include <vector>

namespace maskwise::openvino {

// One operation for several nodes: attention, or a row chain (element-wise steps and a SoftMax
// along the last dimension). Attention has query, key and value as inputs 0, 1 and 2; a row chain
// has the scores as input 0. The other inputs are the operands of the steps, and the scalars that
// scale query or key. Inputs broadcast by the rules of maskwise/attention.hpp. Conditions are
// boolean, or u8 after the CPU plugin's conversion. Other inputs are f32, bf16 or f16; the
// operation computes in f32.
class fused : public operation {
public:
    OPENVINO_OP("Fused", "maskwise")

    fused() = default;
    // Steps must have no constants. A causal step must have no offset. With `scales_by_depth`, the
    // last operand is not an input, but 1 / sqrt(depth) of the query. Throws
    // ov::NodeValidationFailure for wrong types and shapes.
    fused(const ov::OutputVector& inputs, const fusion::block& block, bool scales_by_depth);

    void validate_and_infer_types() override;
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override;
    bool visit_attributes(ov::AttributeVisitor& visitor) override;

private:
    void run(const ov::TensorVector& inputs, ov::Tensor& output) const override;
    std::size_t first_operand() const { return block_.attention ? 3 : 1; }
    std::vector<bool> cond_flags() const;
    ov::element::Type merged_type(const std::vector<bool>& conds) const;
    ov::PartialShape shape_of_rows() const;
    ov::PartialShape shape_of_attention() const;
    float scale_of(const tensor_desc& query) const;

    fusion::block block_;
    bool scales_by_depth_ = false;
    std::shared_ptr<fusion::recent_blocks> compiled_ = std::make_shared<fusion::recent_blocks>();
};

} // namespace maskwise::openvino
