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
// Throws shape_error if the shape's rank is not the model's `rank`.
void require_rank(const dims& shape, int rank);
// The output if it has strides, else a dense output with these extents. Throws shape_error if an
// output with strides does not have these extents.
tensor_desc complete(const tensor_desc& output, const dims& extents);

// Reads what is known only at execution: the operands except cond and bias, and the causal offset.
class numbers_reader {
public:
    numbers_reader() = default;
    // Throws shape_error if an operand other than cond and bias is not one number, or has more than
    // `max_rank` dimensions.
    numbers_reader(attention_form form, const row_chain& rows,
                   std::span<const tensor_desc> operands, int max_rank);

    const attention_form& form() const { return form_; }
    std::size_t operands() const { return types_.size(); }
    // `addresses` holds the addresses of the operands, then of the causal offset's terms. Throws
    // argument_error if a number's address is null.
    attention_numbers read(const tile_plan& plan, std::span<const void* const> addresses) const;
    // The causal mask, or nullopt if there is none. Throws argument_error if a term's address is
    // null.
    std::optional<mask_rules> rules(std::span<const void* const> addresses) const;

private:
    attention_form form_;
    std::vector<data_type> types_; // one per operand; undef for cond and bias
    bool is_causal_ = false;
    std::vector<offset_term> offset_terms_;
};

// Whether an operand is one number that attention can use.
bool is_one_number(const tensor_desc& operand);

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
        std::optional<mask_rules> rules;
    };

    static void describe_scores(attention_desc& desc, const attention_form& form,
                                const std::optional<int>& rank,
                                std::span<const tensor_desc> operands);
    void describe_result(const attention_desc& desc, const attention_chain& attention);
    void describe_outputs(attention_desc& desc, const block_outputs& outputs) const;
    call bind(const block_addresses& addresses) const;

    numbers_reader numbers_;
    dims dst_;
    std::vector<int> dst_order_;
    std::shared_ptr<const tile_plan> plan_;
};

} // namespace maskwise::fusion
