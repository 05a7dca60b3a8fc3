#pragma once

#include "element_types.hpp"

#include <openvino/op/op.hpp>
#include <openvino/runtime/tensor.hpp>

namespace maskwise::openvino {

// An operation of Maskwise's own. It moves or computes elements between the tensors' memory, in the
// oneTBB arena of the calling thread, for any number of threads at once.
class operation : public ov::op::Op {
public:
    using Op::Op;

    bool has_evaluate() const override { return true; }
    // Throws ov::Exception with Maskwise's reason.
    bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override;

protected:
    // Takes the boolean of a condition that the plugin has converted to u8: the same bytes. Throws
    // ov::NodeValidationFailure where it is neither boolean nor u8.
    void take_cond(std::size_t input);

private:
    virtual void run(const ov::TensorVector& inputs, ov::Tensor& output) const = 0;
};

// Strides are left empty where the tensor has no gaps.
tensor_desc describe(const ov::Tensor& tensor);
// Of a condition, u8 is the plugin's boolean.
tensor_desc describe_cond(const ov::Tensor& tensor);

} // namespace maskwise::openvino
