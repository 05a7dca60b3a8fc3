#pragma once

#include "base/scratch.hpp"
#include "exec/run_rows.hpp"
#include "graph/op_set.hpp"
#include "onednn/partition/executable.hpp"
#include "onednn/partition/onednn_subgraph.hpp"
#include "onednn/record/claim.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::onednn {

class composite;

// Memory and tensors of the values inside the composite, for one execution at a time.
struct composite_scratch {
    std::unique_ptr<std::byte[]> memory; // null: the client's
    std::map<std::size_t, abi::tensor> tensors;

    composite_scratch() = default;
    ~composite_scratch();
    composite_scratch(const composite_scratch&) = delete;
    composite_scratch& operator=(const composite_scratch&) = delete;

    // On `given`, which has scratch_bytes() of its owner. Throws std::bad_alloc; tensors made so
    // far are destroyed with the object.
    void make_tensors(const composite& owner, std::byte* given);
};

// A region in three steps: what comes before the chain, the chain's rows, what comes after. The
// outer two are oneDNN's, the middle is Maskwise's. A merged group has no outer steps; with an
// empty chain the region is oneDNN's as a whole.
class composite final : public executable {
public:
    // Throws invalid_argument where a part or the rows cannot be compiled.
    composite(const row_region& region, const compile_call& call);

    bool makes(std::size_t id) const override;
    abi::status execute(const execute_call& call) const override;
    // Where execute is given none, the composite keeps memory of its own.
    std::size_t scratch_bytes() const override;
    const char* kind() const override { return "composite"; }
    std::string describe() const override;

private:
    friend struct composite_scratch;
    struct internal_place {
        abi::logical_tensor tensor;
        std::size_t offset_bytes;
    };
    class bound_tensors;

    void compile_parts(const row_region& region);
    void compile_before(const op_list& before, tensor_map wanted);
    void compile_after(const op_list& after, const tensor_map& wanted);
    void require_nothing_else_leaves() const;
    void bind_result_to_output();
    void place_statistics();
    void require_requested_output(std::size_t output) const;
    tensor_desc describe_input(std::size_t id) const;
    void plan_rows(const graph::row_chain& chain);
    void place_in_scratch(std::size_t id, const abi::logical_tensor& tensor);
    void place_result_in_scratch();
    void place_scratchpad();
    std::optional<abi::inplace_pair> find_inplace() const;
    std::unique_ptr<composite_scratch> take_scratch(void* given) const;
    void give_back(std::unique_ptr<composite_scratch> scratch) const;
    abi::status run_parts(abi::stream stream, const bound_tensors& tensors) const;
    abi::status run_chain(const bound_tensors& tensors) const;

    std::vector<abi::logical_tensor> own_inputs_; // inputs() that the region reads
    std::vector<std::size_t> output_ids_;
    std::size_t needed_outputs_; // of the list's first ones
    graph::row_chain chain_;
    graph_settings settings_;
    abi::engine engine_;
    abi::logical_tensor scores_{}, result_{};
    std::optional<abi::logical_tensor> statistics_;
    std::unique_ptr<onednn_subgraph> before_, after_;
    row_plan rows_;
    std::map<std::size_t, internal_place> internal_; // values that neither come in nor leave
    std::size_t scratch_bytes_ = 0;
    mutable spare<composite_scratch> spare_;
};

} // namespace maskwise::onednn
