#pragma once

#include "onednn/library/abi.hpp"
#include "onednn/partition/compile_call.hpp"
#include "onednn/record/graph_record.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::onednn {

// The arguments that every form of execute shares. Tensors are positional: the lists are those of
// compile. Their own descriptions are not looked at, as the real library does not: only their
// memory counts.
struct execute_call {
    abi::stream stream;
    std::size_t num_inputs;
    const abi::const_tensor* inputs;
    std::size_t num_outputs;
    const abi::const_tensor* outputs;
    abi::const_tensor scratchpad = nullptr;

    bool has_lists() const { return inputs != nullptr && outputs != nullptr; }
};

// A partition that Maskwise has compiled. Any number of threads may execute it at once.
class executable {
public:
    executable(const executable&) = delete;
    executable& operator=(const executable&) = delete;
    virtual ~executable() = default;

    partition_facts partition; // set once compiled

    // As given to compile.
    const std::vector<abi::logical_tensor>& inputs() const { return inputs_; }
    // The same, with shapes and strides filled in.
    const std::vector<abi::logical_tensor>& outputs() const { return outputs_; }
    // The output may lie where the input lies.
    const std::optional<abi::inplace_pair>& inplace() const { return inplace_; }
    void forbid_inplace() { inplace_.reset(); }

    // Whether the partition makes the tensor: the client's lists may name others.
    virtual bool makes(std::size_t id) const = 0;
    // The stream is not null, and the work that makes the inputs is done. Arguments that do not
    // suffice are answered by invalid_arguments.
    virtual abi::status execute(const execute_call& call) const = 0;
    // The bytes that execute needs in call.scratchpad, at any alignment, where that is not null.
    virtual std::size_t scratch_bytes() const { return 0; }
    // For verbose lines: "select", "attention" or "composite", and how it runs.
    virtual const char* kind() const = 0;
    virtual std::string describe() const = 0;

protected:
    explicit executable(const compile_call& call)
        : inputs_(copy_tensors(call.in_num, call.inputs)),
          outputs_(copy_tensors(call.out_num, call.outputs)) {}

    std::vector<abi::logical_tensor> inputs_, outputs_;
    std::optional<abi::inplace_pair> inplace_;
};

} // namespace maskwise::onednn
