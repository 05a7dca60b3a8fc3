#pragma once

#include "attention/run_attention.hpp"
#include "fusion/attention_form.hpp"
#include "fusion/block.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace maskwise::fusion {

// NumPy's rule, and the rank that the model says. Both throw invalid_shape.
dims broadcast(const dims& a, const dims& b);
void require_rank(const dims& shape, int rank);

// A block of attention for inputs of certain shapes.
class fused_attention {
public:
    // `inputs` are described in the order of block::inputs(), dense where without strides. Throws
    // invalid_argument for steps and types that attention does not have, and invalid_shape for
    // shapes that do not fit each other.
    fused_attention(const block& of, std::span<const tensor_desc> inputs);

    // Extents of the tensor that leaves, and of a SoftMax's statistics, with 1 in place of keys.
    const dims& dst() const { return dst_; }
    dims statistics() const;

    // To be called once, before execution, with outputs of the extents above. Throws what
    // compile(attention_desc) does.
    void plan(attention_order order, const tensor_desc& dst, const tensor_desc& statistics = {});

    const attention_data& planned() const { return *plan_; }

    // What run_attention takes for these addresses. Throws invalid_argument where one of an operand
    // with elements is null. Allocates nothing.
    struct call {
        attention_operands at;
        attention_numbers numbers;
    };
    call bind(std::span<const void* const> inputs, void* dst, void* statistics = nullptr) const;

private:
    void describe_scores(const row_chain& chain, std::span<const tensor_desc> operands);
    void describe_result(const attention_chain& attention);
    void take_numbers(std::span<const tensor_desc> operands);

    attention_form form_;
    std::unique_ptr<attention_desc> desc_; // until it is planned: the plan has a copy
    dims dst_;
    std::vector<int> dst_order_;
    std::vector<data_type> number_types_; // of each operand; undef of cond and bias
    std::vector<boundary_term> boundary_;
    std::shared_ptr<const attention_data> plan_;
};

} // namespace maskwise::fusion
