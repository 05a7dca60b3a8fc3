#pragma once

#include "base/scratch.hpp"
#include "exec/run_rows.hpp"
#include "graph/row_chain.hpp"
#include "onednn/abi.hpp"
#include "onednn/real_part.hpp"
#include "onednn/records.hpp"
#include "onednn/region.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::onednn {

class composite;

// What one execution at a time needs: memory and tensors of the values inside the composite.
struct composite_scratch {
    std::unique_ptr<std::byte[]> memory; // null: the client's
    std::map<std::size_t, abi::tensor> tensors;

    composite_scratch() = default;
    ~composite_scratch();
    composite_scratch(const composite_scratch&) = delete;
    composite_scratch& operator=(const composite_scratch&) = delete;

    // On `given`, which has scratch_bytes() of its owner. Throws std::bad_alloc; what was made so
    // far is destroyed with the object.
    void make_tensors(const composite& owner, std::byte* given);
};

// The partition in three steps: what comes before the chain, the chain's rows, what comes after.
// The outer two are oneDNN's, the middle is Maskwise's. A merged partition has no outer steps; with
// an empty chain it is oneDNN's as a whole. Any number of threads may execute it.
class composite {
public:
    // Throws invalid_argument where a part or the rows cannot be compiled: the partition is then
    // oneDNN's as a whole.
    composite(const region_record& region, const std::vector<abi::logical_tensor>& inputs,
              const std::vector<abi::logical_tensor>& outputs, abi::engine engine);

    // Outputs as compiled, in the order given.
    const std::vector<abi::logical_tensor>& outputs() const { return outputs_; }
    bool makes(std::size_t id) const;
    std::string describe() const;
    // Where the rows are all there is: the scores may be overwritten by a result of their layout.
    std::optional<abi::inplace_pair> inplace() const;

    // What an execution needs between its parts, at any alignment.
    std::size_t scratch_bytes() const;
    // Tensors in the order of the lists given to compile; what the partition does not have may be
    // left out behind the others. `scratchpad` has scratch_bytes() that no
    // other execution uses at the time; null: the composite's own memory.
    abi::status execute(abi::stream stream, std::size_t num_inputs, const abi::const_tensor* inputs,
                        std::size_t num_outputs, const abi::const_tensor* outputs,
                        void* scratchpad);

private:
    friend struct composite_scratch;
    struct internal_place {
        abi::logical_tensor tensor;
        std::size_t offset_bytes;
    };
    class bound_tensors;

    void compile_parts(const region_record& region, abi::engine engine);
    void compile_before(const std::vector<const op_record*>& before, tensor_map wanted,
                        const region_record& region, abi::engine engine);
    void compile_after(const std::vector<const op_record*>& after, const region_record& region,
                       abi::engine engine);
    void take_outputs();
    void let_result_leave();
    void place_statistics();
    void require_given(std::size_t output) const;
    tensor_desc describe_input(std::size_t id) const;
    void compile_rows(const graph::row_chain& chain);
    void keep_inside(const abi::logical_tensor& tensor);
    void keep_result_inside();
    void keep_scratchpad();
    std::unique_ptr<composite_scratch> take_scratch(void* given);
    void give_back(std::unique_ptr<composite_scratch> scratch);
    abi::status run_chain(const bound_tensors& tensors) const;

    std::vector<abi::logical_tensor> inputs_, outputs_;
    std::vector<std::size_t> output_ids_;
    std::size_t needed_outputs_; // of the list's first ones
    graph::row_chain chain_;
    abi::engine engine_;
    abi::logical_tensor scores_{}, result_{};
    std::optional<abi::logical_tensor> statistics_;
    std::unique_ptr<real_part> before_, after_;
    row_plan rows_;
    std::map<std::size_t, internal_place> internal_; // values that neither come in nor leave
    std::size_t scratch_bytes_ = 0;
    spare<composite_scratch> spare_;
};

} // namespace maskwise::onednn
