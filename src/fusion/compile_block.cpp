#include "fusion/compiled_block.hpp"

#include "base/cache.hpp"
#include "base/cpu.hpp"
#include "base/error.hpp"
#include "exec/run_rows.hpp"
#include "exec/run_select.hpp"
#include "fusion/compiled_attention.hpp"
#include "plan/select_plan.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <optional>

namespace maskwise::fusion {
namespace {

dims shape_of(std::span<const tensor_desc> inputs) {
    dims shape;
    for (const tensor_desc& input : inputs) shape = broadcast(shape, input.extents);
    return shape;
}

// A number is a row of one element: ONNX Runtime runs Softmax of one in f16.
tensor_desc as_rows(const tensor_desc& desc) {
    return desc.extents.empty() ? dense_desc(desc.type, {1}) : with_strides(desc);
}

// Scores of a smaller shape are repeated in the result's place first.
class compiled_rows final : public compiled_block {
public:
    compiled_rows(const block& of, std::span<const tensor_desc> inputs,
                  const block_outputs& outputs)
        : offset_terms_(of.rows.causal_offset) {
        const auto terms = inputs.last(offset_terms_.size());
        inputs = inputs.first(inputs.size() - terms.size());
        for (const tensor_desc& term : terms) require_offset_term(term);
        shape_ = shape_of(inputs);
        if (of.rows.rank) require_rank(shape_, *of.rows.rank);
        row_desc desc;
        desc.result = complete(outputs.dst, shape_);
        if (element_count(shape_) == 0) return;
        if (inputs[0].extents != shape_) {
            if (inputs[0].type != desc.result.type)
                throw argument_error("scores " + to_string(inputs[0]) + " are repeated in " +
                                     to_string(desc.result) + " of another type");
            repeat_ = make_copy_plan(with_strides(inputs[0]), desc.result);
        }
        desc.scores = as_rows(repeat_ ? desc.result : inputs[0]);
        desc.result = as_rows(desc.result);
        for (const tensor_desc& operand : inputs.subspan(1))
            desc.operands.push_back(with_strides(operand));
        desc.steps = of.rows.steps;
        desc.soft_max = of.rows.soft_max;
        desc.quantize = of.rows.quantize;
        if (outputs.statistics.type != data_type::undef)
            desc.statistics = complete(outputs.statistics, statistics());
        rows_ = make_row_plan(desc, active_isa(), stream_threshold_bytes());
    }

    const dims& dst() const override { return shape_; }

    dims statistics() const override {
        dims extents = shape_;
        if (!extents.empty()) extents[extents.rank() - 1] = 1;
        return extents;
    }

    void run(const block_addresses& at, const parallel_loop* loop, block_scratch*) const override {
        if (!rows_) return;
        const auto operands = at.inputs.subspan(1, rows_->operands.size());
        if (at.inputs[0] == nullptr || at.dst == nullptr ||
            (rows_->statistics && at.statistics == nullptr) ||
            std::ranges::count(operands, nullptr) > 0)
            throw argument_error("a tensor of the rows has no memory");
        if (repeat_) run_copy(*repeat_, at.inputs[0], at.dst, loop);
        const void* const scores = repeat_ ? at.dst : at.inputs[0]; // rows may run in place
        run_rows(*rows_,
                 {scores, at.dst, operands, at.statistics,
                  offset_of(offset_terms_, at.inputs.last(offset_terms_.size()))},
                 loop);
    }

    std::string describe() const override { return rows_ ? to_string(*rows_) : "no rows"; }

private:
    dims shape_;
    std::vector<offset_term> offset_terms_;
    std::shared_ptr<const select_plan> repeat_;
    std::optional<row_plan> rows_; // none where there are no elements
};

} // namespace

std::shared_ptr<const compiled_block> compile(const block& of, std::span<const tensor_desc> inputs,
                                              const block_outputs& outputs) {
    if (of.attention) return std::make_shared<compiled_attention>(of, inputs, outputs);
    return std::make_shared<compiled_rows>(of, inputs, outputs);
}

} // namespace maskwise::fusion
