#pragma once

#include "base/scratch.hpp"
#include "onednn/partition/compile_call.hpp"
#include "onednn/record/graph_record.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::onednn {

// The arguments common to all execute functions. Tensors are in the order of the lists passed to
// compile. Only the memory of a tensor is used, as in oneDNN; its description is ignored.
struct execute_call {
    abi::stream stream;
    std::size_t num_inputs;
    const abi::const_tensor* inputs;
    std::size_t num_outputs;
    const abi::const_tensor* outputs;
    abi::const_tensor scratchpad = nullptr;
};

// A tensor of an execution: its position in one of the client's lists or among the inner values.
struct place {
    enum class list : std::uint8_t { inputs, outputs, inner };
    list in = list::inputs;
    std::size_t position = 0;
};

struct execution {
    const execute_call& call;
    const std::vector<abi::tensor>& inner;

    abi::const_tensor tensor(place slot) const {
        if (slot.in == place::list::inner) return inner[slot.position];
        return slot.in == place::list::inputs ? call.inputs[slot.position]
                                              : call.outputs[slot.position];
    }
};

// A step of a compiled partition: a Select, a row chain, attention, gradients, a copy, or one of
// oneDNN's partitions. Any number of threads may run a segment at once.
class segment {
public:
    virtual ~segment() = default;

    // Returns invalid_arguments if a tensor with elements has no memory.
    virtual abi::status run(const execution& tensors) const = 0;
    // Whether `run` may return before the work is complete, as on SYCL.
    virtual bool is_queued() const { return false; }
    // The plan for verbose lines; empty if oneDNN runs the segment.
    virtual std::string describe() const { return {}; }
};

enum class partition_kind : std::uint8_t { select, attention, gradients, composite };
const char* name_of(partition_kind kind);

// A tensor between segments, stored in scratch memory.
struct inner_value {
    logical_tensor tensor;
    std::size_t offset_bytes;
};

struct executable_parts {
    executable_parts(partition_kind parts_kind, const compile_request& request);

    partition_kind kind;
    abi::engine engine;
    tensor_list inputs;                       // as given to compile
    tensor_list outputs;                      // as given to compile, with all shapes and strides
    std::vector<std::size_t> output_ids;      // results only; `outputs` may list other tensors
    std::optional<abi::inplace_pair> inplace; // an input, and the output that may overwrite it
    std::size_t needed_inputs = 0, needed_outputs = 0; // minimum lengths of execute's lists
    std::vector<std::unique_ptr<segment>> segments;
    std::vector<inner_value> inner;
    std::size_t inner_bytes = 0;

    bool makes(std::size_t id) const; // whether the tensor is a result
    // Returns the place of the tensor at this position of the client's list. `execute` then
    // requires a list that is longer than `position`.
    place input_at(std::size_t position);
    place output_at(std::size_t position);
};

// A partition that Maskwise has compiled. Any number of threads may execute it at once.
class executable {
public:
    explicit executable(executable_parts&& parts) : parts_(std::move(parts)) {}

    partition_facts partition; // set by compile_partition

    partition_kind kind() const { return parts_.kind; }
    const tensor_list& inputs() const { return parts_.inputs; }
    const tensor_list& outputs() const { return parts_.outputs; }
    const std::optional<abi::inplace_pair>& inplace() const { return parts_.inplace; }
    void forbid_inplace() { parts_.inplace.reset(); }

    bool makes(std::size_t id) const { return parts_.makes(id); }
    // The stream must not be null, and the inputs must be ready. Returns invalid_arguments if a
    // list is null or too short, and out_of_memory if there is no memory for scratch. Else returns
    // the status of the first segment that fails, or success.
    abi::status execute(const execute_call& call) const;
    // Returns the bytes that execute needs in call.scratchpad, at any alignment. If call.scratchpad
    // is null, the executable allocates and caches the memory.
    std::size_t scratch_bytes() const;
    std::string describe() const;

private:
    // Memory and tensors of the inner values. Used by one execution at a time.
    struct scratch {
        std::unique_ptr<std::byte[]> memory; // null: the memory is the client's
        std::vector<abi::tensor> tensors;

        scratch() = default;
        ~scratch();
        scratch(const scratch&) = delete;
        scratch& operator=(const scratch&) = delete;
    };

    std::unique_ptr<scratch> take_scratch(void* client_memory) const;
    abi::status run_segments(const execution& tensors) const;

    executable_parts parts_;
    mutable scratch_pool<scratch> scratch_;
};

} // namespace maskwise::onednn
