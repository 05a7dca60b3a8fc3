#pragma once

#include "element_types.hpp"

#include <openvino/op/op.hpp>
#include <openvino/runtime/tensor.hpp>

namespace maskwise::openvino {

// Base of Maskwise's operations. An operation runs in the oneTBB arena of the calling thread. Any
// number of threads may evaluate an operation at once.
class operation : public ov::op::Op {
public:
    using Op::Op;

    bool has_evaluate() const override { return true; }
    // Throws ov::Exception with Maskwise's reason.
    bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override;

protected:
    // If a Convert from boolean to u8 produces the condition, connects the Convert's boolean input
    // instead. The bytes are the same. Throws ov::NodeValidationFailure if the condition's type is
    // known and is neither boolean nor u8.
    void accept_cond(std::size_t input);

private:
    virtual void run(const ov::TensorVector& inputs, ov::Tensor& output) const = 0;
};

// Strides are empty if the tensor is dense.
tensor_desc describe(const ov::Tensor& tensor);
// Describes a condition. u8 becomes boolean, because the CPU plugin stores booleans as u8.
tensor_desc describe_cond(const ov::Tensor& tensor);

} // namespace maskwise::openvino
