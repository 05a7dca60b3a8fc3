#pragma once

#include "fusion/block.hpp"
#include "fusion/match_policy.hpp"

#include <cstddef>
#include <optional>

namespace maskwise::fusion {

// Matching policy for hosts that replace a chain by one node: every inner value has exactly one
// consumer and is not a graph output.
class host_policy : public match_policy {
public:
    // The kernels broadcast, so either input may be the row. Picks the input that is more likely to
    // be the scores; nullopt if that input is one element.
    std::optional<std::size_t> row_of(const op& user, std::size_t a, std::size_t b) const override;
    bool may_follow_soft_max(data_type) const override { return false; }
    bool may_scale_scores() const override { return true; }

protected:
    explicit host_policy(graph_index values) : match_policy(std::move(values)) {}

private:
    bool comes_from_product(std::size_t value, int depth) const;
};

// The block around a SoftMax along the last dimension. The block is attention if the chain is
// between two MatMuls and the attention kernels support the chain and its operands; else the block
// is only the chain. Throws no_chain if there is no chain.
block find_block(const op& soft_max, const match_policy& policy);

} // namespace maskwise::fusion
