#pragma once

#include "fusion/fused_attention.hpp"
#include "onednn/partition/executable.hpp"
#include "onednn/partition/onednn_subgraph.hpp"
#include "onednn/record/claim.hpp"

#include <cstddef>
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
    tensor_desc describe_output(std::size_t id, const dims& extents);
    void count_needed();

    std::vector<std::size_t> input_ids_; // the block's
    std::vector<bool> is_number_;        // may be a host scalar
    std::size_t dst_;
    std::optional<std::size_t> statistics_;
    std::vector<std::size_t> output_ids_;
    std::size_t needed_inputs_ = 0, needed_outputs_ = 0; // of the lists' first ones
    fusion::fused_attention attention_;
};

} // namespace maskwise::onednn
