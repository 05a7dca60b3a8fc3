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

// A scalar becomes a row of one element, because ONNX Runtime accepts a Softmax of an f16 scalar.
tensor_desc as_rows(const tensor_desc& desc) {
    return desc.extents.empty() ? dense_desc(desc.type, {1}) : with_strides(desc);
}

// Scores of a smaller shape than the result are first broadcast into the result's memory.
class compiled_rows final : public compiled_block {
public:
    compiled_rows(const block& matched, std::span<const tensor_desc> inputs,
                  const block_outputs& outputs)
        : offset_terms_(matched.rows.causal_offset) {
        const auto terms = inputs.last(offset_terms_.size());
        inputs = inputs.first(inputs.size() - terms.size());
        for (const tensor_desc& term : terms) require_offset_term(term);
        shape_ = shape_of(inputs);
        if (matched.rows.rank) require_rank(shape_, *matched.rows.rank);
        row_desc desc;
        desc.result = complete(outputs.dst, shape_);
        if (element_count(shape_) == 0) return;
        if (inputs[0].extents != shape_) {
            if (inputs[0].type != desc.result.type)
                throw argument_error("scores " + to_string(inputs[0]) + " cannot be broadcast to " +
                                     to_string(desc.result) + ": the types differ");
            repeat_ = make_copy_plan(with_strides(inputs[0]), desc.result);
        }
        desc.scores = as_rows(repeat_ ? desc.result : inputs[0]);
        desc.result = as_rows(desc.result);
        for (const tensor_desc& operand : inputs.subspan(1))
            desc.operands.push_back(with_strides(operand));
        desc.steps = matched.rows.steps;
        desc.soft_max = matched.rows.soft_max;
        desc.quantize = matched.rows.quantize;
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

    void run(const block_addresses& addresses, const parallel_loop* loop,
             block_scratch*) const override {
        if (!rows_) return;
        const auto operands = addresses.inputs.subspan(1, rows_->operands.size());
        if (addresses.inputs[0] == nullptr || addresses.dst == nullptr ||
            (rows_->statistics && addresses.statistics == nullptr) ||
            std::ranges::count(operands, nullptr) > 0)
            throw argument_error("a tensor of the rows has no memory");
        if (repeat_) run_copy(*repeat_, addresses.inputs[0], addresses.dst, loop);
        const void* const scores =
            repeat_ ? addresses.dst : addresses.inputs[0]; // rows may run in place
        run_rows(*rows_,
                 {scores, addresses.dst, operands, addresses.statistics,
                  offset_of(offset_terms_, addresses.inputs.last(offset_terms_.size()))},
                 loop);
    }

    std::string describe() const override { return rows_ ? to_string(*rows_) : "no rows"; }

private:
    dims shape_;
    std::vector<offset_term> offset_terms_;
    std::shared_ptr<const select_plan> repeat_;
    std::optional<row_plan> rows_; // none if the result is empty
};

} // namespace

std::shared_ptr<const compiled_block>
compile(const block& matched, std::span<const tensor_desc> inputs, const block_outputs& outputs) {
    if (matched.attention) return std::make_shared<compiled_attention>(matched, inputs, outputs);
    return std::make_shared<compiled_rows>(matched, inputs, outputs);
}

} // namespace maskwise::fusion
