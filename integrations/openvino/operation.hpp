#pragma once

#include "element_types.hpp"

#include <openvino/op/op.hpp>
#include <openvino/runtime/tensor.hpp>

namespace maskwise::openvino {

// Base of Maskwise's operations. Runs in the calling thread's oneTBB arena. Any number of threads
// may evaluate an operation at once.
class operation : public ov::op::Op {
public:
    using Op::Op;

    bool has_evaluate() const override { return true; }
    // Throws ov::Exception with Maskwise's reason.
    bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override;

protected:
    // Bypasses a Convert from boolean to u8 that produces the condition: the Convert's input has
    // the same bytes. Throws ov::NodeValidationFailure for a known type other than boolean and u8.
    void accept_cond(std::size_t input);

private:
    virtual void run(const ov::TensorVector& inputs, ov::Tensor& output) const = 0;
};

// Strides are empty if the tensor is dense.
tensor_desc describe(const ov::Tensor& tensor);
// u8 becomes boolean, because the CPU plugin stores booleans as u8.
tensor_desc describe_cond(const ov::Tensor& tensor);

} // namespace maskwise::openvino
