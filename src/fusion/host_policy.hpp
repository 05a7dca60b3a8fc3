#pragma once

#include "fusion/block.hpp"
#include "fusion/match_policy.hpp"

#include <cstddef>
#include <optional>

namespace maskwise::fusion {

// Matching policy for hosts that replace a chain by one node: every inner value has exactly one
// consumer and is not a graph output. The kernels broadcast, so any input of an operator may be the
// row: it is the one that is most likely the scores.
class host_policy : public match_policy {
public:
    std::optional<std::size_t> row_of(const op& user, std::size_t a, std::size_t b) const override;
    bool may_follow_soft_max(data_type) const override { return false; }
    bool may_scale_scores() const override { return true; }

protected:
    explicit host_policy(graph_index values) : match_policy(std::move(values)) {}

private:
    bool comes_from_product(std::size_t value, int depth) const;
};

// The block around a SoftMax along the last dimension: attention if its kernels support the chain,
// else rows. Throws no_chain if there are no rows either.
block find_block(const op& soft_max, const match_policy& policy);

} // namespace maskwise::fusion
