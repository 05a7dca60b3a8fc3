#include "fusion/compiled_block.hpp"

#include "attention/run_attention.hpp"
#include "base/cache.hpp"
#include "base/cpu.hpp"
#include "exec/run_measured.hpp"
#include "exec/run_rows.hpp"
#include "exec/run_select.hpp"
#include "fusion/fused_attention.hpp"
#include "plan/select_plan.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <optional>

namespace maskwise::fusion {
namespace {

tensor_desc complete(const tensor_desc& result, const dims& shape) {
    return result.strides_bytes.empty() ? dense_desc(result.type, shape) : result;
}

class compiled_attention : public compiled_block {
public:
    compiled_attention(const block& of, std::span<const tensor_desc> inputs,
                       const tensor_desc& result)
        : attention_(of, inputs) {
        attention_.plan(attention_order::tiles, complete(result, dst()));
    }

    const dims& dst() const override { return attention_.dst(); }

    void run(std::span<const void* const> inputs, void* dst, const parallel_loop* loop,
             scratch_pool& memory) const override {
        const attention_data& plan = attention_.planned();
        const auto call = attention_.bind(inputs, dst);
        const bool is_small = loop != nullptr && products_of(plan) < least_products;
        const parallel_loop alone{1, {}};
        memory.lend([&](std::unique_ptr<attention_scratch>& scratch) {
            run_measured(plan, [&] {
                run_attention(plan, call.at, call.numbers, is_small ? &alone : loop, scratch);
            });
        });
    }

private:
    // A host's threads wait awake unless it says otherwise, so one more pays sooner than one of
    // oneTBB's.
    static constexpr double least_products = 1 << 16;

    fused_attention attention_;
};

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
class compiled_rows : public compiled_block {
public:
    compiled_rows(const block& of, std::span<const tensor_desc> inputs, const tensor_desc& dst)
        : shape_(shape_of(inputs)) {
        if (of.rows.rank) require_rank(shape_, *of.rows.rank);
        const tensor_desc result = complete(dst, shape_);
        if (element_count(shape_) == 0) return;
        if (inputs[0].extents != shape_) repeat_ = make_copy_plan(with_strides(inputs[0]), result);
        row_desc desc;
        desc.scores = as_rows(repeat_ ? result : inputs[0]);
        desc.result = as_rows(result);
        for (const tensor_desc& operand : inputs.subspan(1))
            desc.operands.push_back(with_strides(operand));
        desc.steps = of.rows.steps;
        desc.soft_max = of.rows.soft_max;
        rows_ = make_row_plan(desc, active_isa(), stream_threshold_bytes());
    }

    const dims& dst() const override { return shape_; }

    void run(std::span<const void* const> inputs, void* dst, const parallel_loop* loop,
             scratch_pool&) const override {
        if (!rows_) return;
        if (repeat_) run_copy(*repeat_, inputs[0], dst, loop);
        const void* const scores = repeat_ ? dst : inputs[0]; // rows may run in place
        run_measured(*rows_, [&] { run_rows(*rows_, {scores, dst, inputs.subspan(1)}, loop); });
    }

private:
    dims shape_;
    std::shared_ptr<const select_plan> repeat_;
    std::optional<row_plan> rows_; // none where there are no elements
};

} // namespace

std::shared_ptr<const compiled_block> compile(const block& of, std::span<const tensor_desc> inputs,
                                              const tensor_desc& dst) {
    if (of.attention) return std::make_shared<compiled_attention>(of, inputs, dst);
    return std::make_shared<compiled_rows>(of, inputs, dst);
}

std::unique_ptr<attention_scratch> scratch_pool::take() {
    const std::lock_guard lock(mutex_);
    if (kept_.empty()) return nullptr;
    auto last = std::move(kept_.back());
    kept_.pop_back();
    return last;
}

void append(operand_shapes& to, const tensor_desc& desc) {
    to.push_back(desc.extents.rank());
    to.insert(to.end(), desc.extents.begin(), desc.extents.end());
    to.insert(to.end(), desc.strides_bytes.begin(), desc.strides_bytes.end());
}

recent_blocks::pointer recent_blocks::find_known(const operand_shapes& of) {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(kept_, of, &std::pair<operand_shapes, pointer>::first);
    return known == kept_.end() ? nullptr : known->second;
}

void recent_blocks::keep(const operand_shapes& of, const pointer& made) {
    constexpr std::size_t most = 4;
    const std::lock_guard lock(mutex_);
    if (kept_.size() == most) kept_.pop_back();
    kept_.emplace_front(of, made);
}

} // namespace maskwise::fusion
