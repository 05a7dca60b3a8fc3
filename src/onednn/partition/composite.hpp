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

// A region in three parts: the operators before the block's rows, these rows, the operators after
// them. The outer two are oneDNN's, the middle is Maskwise's. A merged group has no outer parts; a
// region without a block is the part after it.
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
    struct inner_value {
        abi::logical_tensor tensor;
        std::size_t offset_bytes;
    };
    // Memory and tensors of the inner values, for one execution at a time.
    struct scratch {
        std::unique_ptr<std::byte[]> memory; // null: the client's
        std::map<std::size_t, abi::tensor> tensors;

        scratch() = default;
        ~scratch();
        scratch(const scratch&) = delete;
        scratch& operator=(const scratch&) = delete;
    };

    void compile_parts(const row_region& region);
    void compile_before(const row_region& region, const graph::division& parts);
    void compile_after(const op_list& after);
    void place_statistics();
    void bind_result();
    void place_result_in_scratch();
    void plan_rows();
    bool bind_to_output(abi::logical_tensor& value);
    void place_in_scratch(std::size_t id, const abi::logical_tensor& tensor);
    void place_scratchpad();
    std::optional<abi::inplace_pair> find_inplace() const;

    std::unique_ptr<scratch> take_scratch(void* given) const;
    abi::status run_parts(abi::stream stream, const tensor_lookup& find) const;
    abi::status run_chain(const tensor_lookup& find) const;

    std::vector<abi::logical_tensor> read_inputs_; // inputs() that the region reads
    std::vector<std::size_t> output_ids_;          // that the region makes
    std::size_t needed_outputs_ = 0;               // of the list's first ones
    std::optional<fusion::row_chain> chain_;       // none where oneDNN runs all
    graph_settings settings_;
    abi::engine engine_;
    abi::logical_tensor scores_{}, result_{};
    std::optional<abi::logical_tensor> statistics_;
    std::unique_ptr<onednn_subgraph> before_, after_;
    row_plan rows_;
    std::map<std::size_t, inner_value> inner_values_; // that neither come in nor leave
    std::size_t scratch_bytes_ = 0;
    mutable spare<scratch> spare_;
};

} // namespace maskwise::onednn
