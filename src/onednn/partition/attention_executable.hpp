#pragma once

#include "graph/attention_form.hpp"
#include "onednn/partition/executable.hpp"
#include "onednn/partition/onednn_subgraph.hpp"
#include "onednn/record/claim.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::onednn {

// A partition that is attention as a whole, run by the engine tile by tile: no part of it is
// oneDNN's, and scores are never stored.
class attention_executable final : public executable {
public:
    // The region has an attention. Throws invalid_argument where the engine cannot run it, or
    // oneDNN's own products are expected to be the faster ones.
    attention_executable(const row_region& region, const compile_call& call);

    bool makes(std::size_t id) const override;
    abi::status execute(const execute_call& call) const override;
    const char* kind() const override { return "attention"; }
    std::string describe() const override;

private:
    attention_desc describe_inputs(const graph::attention_chain& attention) const;
    void describe_outputs(const graph::attention_chain& attention, attention_desc& desc);
    void count_needed();
    const void* address(std::optional<std::size_t> operand, const tensor_lookup& find) const;
    std::optional<attention_numbers> read_numbers(const tensor_lookup& find) const;

    graph::row_chain chain_;
    graph::attention_form form_;
    std::vector<tensor_desc> operands_; // of the chain's
    std::size_t query_, key_, value_;   // ids
    std::size_t dst_;
    std::vector<std::size_t> output_ids_;
    std::size_t needed_inputs_ = 0, needed_outputs_ = 0; // of the lists' first ones
    std::shared_ptr<const attention_data> plan_;
};

} // namespace maskwise::onednn
