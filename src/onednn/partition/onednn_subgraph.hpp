#pragma once

#include "graph/compiled_select.hpp"
#include "onednn/library/abi.hpp"
#include "onednn/record/graph_record.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace maskwise::onednn {

using tensor_map = std::map<std::size_t, abi::logical_tensor>;

// The tensor of one execution by its id.
using tensor_lookup = std::function<abi::const_tensor(std::size_t)>;

// The id of scratchpads, which no tensor of a client has.
inline constexpr std::size_t scratchpad_id = SIZE_MAX;
// The id under which the copy of a tensor is found is this one less the tensor's; its description
// keeps the tensor's.
inline constexpr std::size_t first_copy_id = scratchpad_id - 2;
// Memory of oneDNN's own for one execution, as it describes it: 1-D, u8. Without bytes a client
// skips the allocation.
abi::logical_tensor scratchpad_of(std::size_t bytes);

// Operators of a larger partition that stay oneDNN's, as a graph of their own: the same ids and
// attributes, partitioned and compiled by the real library. A Select that it leaves alone is
// Maskwise's here, too: not every oneDNN has one, and that of 3.7 makes NaN of masked infinities.
class onednn_subgraph {
public:
    // `given` describes the tensors that come in, `wanted` those that must come out. Throws
    // invalid_argument where the real library does not take, support or compile the operators.
    onednn_subgraph(const op_list& ops, const graph_settings& settings, const tensor_map& given,
                    const tensor_map& wanted, abi::engine engine);
    ~onednn_subgraph();
    onednn_subgraph(const onednn_subgraph&) = delete;
    onednn_subgraph& operator=(const onednn_subgraph&) = delete;

    // Tensors that this part makes and uses itself: the caller provides memory for them.
    const tensor_map& intermediates() const { return intermediates_; }
    // As compiled, for the ids of `wanted`.
    const tensor_map& outputs() const { return outputs_; }
    // The scratch memory that the library would allocate in every execution, where it lets the
    // caller do so: execute then looks up a tensor of so many bytes as scratchpad_id.
    std::size_t scratch_bytes() const { return scratch_bytes_; }
    // On SYCL the last step may still run when this returns.
    abi::status execute(abi::stream stream, const tensor_lookup& find) const;

private:
    struct input_copy {
        std::size_t from, to;
        std::shared_ptr<const select_plan> plan;
    };
    // One partition of the subgraph.
    struct compiled_step {
        abi::partition partition = nullptr;
        abi::compiled_partition compiled = nullptr;
        std::optional<graph::op> select;                 // where it is one, alone
        std::optional<graph::compiled_select> as_select; // where Maskwise runs it
        std::vector<std::size_t> inputs, outputs;
        std::vector<input_copy> copies; // made before the step runs
    };

    void build_graph(const op_list& ops, const graph_settings& settings);
    void take_partitions(const op_list& ops);
    void compile_step(compiled_step& step, tensor_map& known, const tensor_map& wanted,
                      abi::engine engine);
    abi::logical_tensor take_input(compiled_step& step, const abi::logical_tensor& tensor);
    static bool compile_as_select(compiled_step& step,
                                  const std::vector<abi::logical_tensor>& inputs,
                                  std::vector<abi::logical_tensor>& outputs);
    void compile_by_onednn(compiled_step& step, const std::vector<abi::logical_tensor>& inputs,
                           std::vector<abi::logical_tensor>& outputs, abi::engine engine);
    void ask_for_scratch(const compiled_step& step);
    static abi::status execute_as_select(const compiled_step& step, const tensor_lookup& find);
    void release();

    abi::graph graph_ = nullptr;
    std::vector<compiled_step> steps_;
    tensor_map intermediates_, outputs_;
    std::size_t scratch_bytes_ = 0; // of the step that needs most
};

} // namespace maskwise::onednn
