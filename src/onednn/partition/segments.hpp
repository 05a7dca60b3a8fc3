#pragma once

#include "fusion/compiled_block.hpp"
#include "fusion/compiled_gradients.hpp"
#include "graph/compiled_select.hpp"
#include "onednn/partition/executable.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::onednn {

// A tensor that a segment reads. `is_number`: has one element, so it may be a host scalar.
struct source {
    place memory;
    bool is_number;
};

class select_segment final : public segment {
public:
    // Sources are cond, src_0 and src_1. `run` returns invalid_arguments for a null pointer unless
    // dst is empty.
    select_segment(const graph::compiled_select& select, const std::array<source, 3>& sources,
                   place dst);

    abi::status run(const execution& tensors) const override;
    std::string describe() const override { return to_string(*plan_); }

private:
    std::shared_ptr<const select_plan> plan_;
    bool is_empty_;
    std::array<source, 3> sources_;
    place dst_;
};

// A row chain or attention.
class block_segment final : public segment {
public:
    struct outputs {
        place dst;
        std::optional<place> statistics;
    };

    // Sources are in the order of block::inputs(). `ending` follows the plan in verbose lines.
    block_segment(std::shared_ptr<const fusion::compiled_block> block, std::vector<source> sources,
                  const outputs& results, std::string ending)
        : block_(std::move(block)), sources_(std::move(sources)), results_(results),
          ending_(std::move(ending)) {}

    abi::status run(const execution& tensors) const override;
    std::string describe() const override { return block_->describe() + ending_; }

private:
    std::shared_ptr<const fusion::compiled_block> block_;
    std::vector<source> sources_;
    outputs results_;
    std::string ending_;
};

class gradients_segment final : public segment {
public:
    // Sources are in the order of gradients_chain::inputs().
    gradients_segment(std::shared_ptr<const fusion::compiled_gradients> gradients,
                      std::vector<source> sources, const std::array<place, 3>& results)
        : gradients_(std::move(gradients)), sources_(std::move(sources)), results_(results) {}

    abi::status run(const execution& tensors) const override;
    std::string describe() const override { return gradients_->describe(); }

private:
    std::shared_ptr<const fusion::compiled_gradients> gradients_;
    std::vector<source> sources_;
    std::array<place, 3> results_; // of query, key and value
};

} // namespace maskwise::onednn
