#pragma once

#include "fusion/attention_form.hpp"
#include "fusion/compiled_block.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace maskwise::fusion {

// Broadcasts by NumPy's rule. Throws shape_error.
dims broadcast(const dims& a, const dims& b);
// Throws shape_error if the rank is not the model's.
void require_rank(const dims& shape, int rank);
// The output, dense if it has no strides. Throws shape_error if its extents differ.
tensor_desc complete(const tensor_desc& output, const dims& extents);

// A compiled block with attention.
class compiled_attention final : public compiled_block {
public:
    compiled_attention(const block& matched, std::span<const tensor_desc> inputs,
                       const block_outputs& outputs);

    const dims& dst() const override { return dst_; }
    dims statistics() const override;
    void run(const block_addresses& addresses, const parallel_loop* loop,
             block_scratch* memory) const override;
    std::string describe() const override { return to_string(*plan_); }
    const tile_plan* attention() const override { return plan_.get(); }

private:
    struct call {
        attention_operands operands;
        attention_numbers numbers;
        mask_rules rules; // if is_causal_
    };

    void describe_scores(attention_desc& desc, const row_chain& chain,
                         std::span<const tensor_desc> operands) const;
    void describe_result(const attention_desc& desc, const attention_chain& attention);
    void take_numbers(std::span<const tensor_desc> operands);
    void describe_outputs(attention_desc& desc, const block_outputs& outputs) const;
    call bind(const block_addresses& addresses) const;

    attention_form form_;
    dims dst_;
    std::vector<int> dst_order_;
    std::vector<data_type> number_types_; // one per operand; undef for cond and bias
    bool is_causal_;
    std::vector<offset_term> offset_terms_;
    std::shared_ptr<const tile_plan> plan_;
};

} // namespace maskwise::fusion
