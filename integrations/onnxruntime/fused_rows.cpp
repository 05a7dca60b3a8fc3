#include "fused_plan.hpp"

#include "api/run_measured.hpp"
#include "base/cache.hpp"
#include "exec/run_rows.hpp"
#include "graph/fused_attention.hpp"
#include "tensor/tensor_desc.hpp"

#include <cstddef>

namespace maskwise::ort {
namespace {

// Scores that a mask or a bias broadcasts are expanded first.
plan make_expansion(const tensor_desc& scores, const dims& shape) {
    const tensor_desc one_repeated{scores.type, shape, dims::filled(shape.rank(), 0)};
    return compile(dialect::onnx_where_16,
                   {.cond = {data_type::boolean, {}}, .src_0 = scores, .src_1 = one_repeated});
}

// A number is a row of one element: ONNX Runtime runs Softmax of one in f16.
row_desc describe(const fusion& of, std::span<const tensor_desc> inputs, const dims& shape) {
    row_desc desc;
    desc.scores = desc.result = dense_desc(of.type, shape.empty() ? dims{1} : shape);
    for (const tensor_desc& operand : inputs.subspan(1))
        desc.operands.push_back(dense_desc(operand.type, operand.extents));
    desc.steps = of.chain.steps;
    desc.soft_max = of.chain.soft_max;
    return desc;
}

class fused_rows : public fused_plan {
public:
    fused_rows(const fusion& of, std::span<const tensor_desc> inputs, const dims& shape)
        : shape_(shape), rows_(make_row_plan(describe(of, inputs, shape), active_isa(),
                                             stream_threshold_bytes())) {
        if (inputs[0].extents != shape) expansion_.emplace(make_expansion(inputs[0], shape));
    }

    const dims& shape() const override { return shape_; }

    void run(std::span<const void* const> inputs, void* output, const parallel_loop& loop,
             session_facts&) const override {
        if (element_count(shape_) == 0) return;
        const void* scores = inputs[0];
        if (expansion_) { // rows may run in place
            constexpr bool keep = true;
            constexpr float unread = 0;
            expansion_->execute({.cond = &keep, .src_0 = scores, .src_1 = &unread}, output, loop);
            scores = output;
        }
        run_measured(rows_, [&] { run_rows(rows_, {scores, output, inputs.subspan(1)}, &loop); });
    }

private:
    dims shape_;
    row_plan rows_;
    std::optional<plan> expansion_;
};

} // namespace

std::shared_ptr<const fused_plan> make_fused_rows(const fusion& of,
                                                  std::span<const tensor_desc> inputs) {
    dims shape = inputs[0].extents;
    for (const tensor_desc& operand : inputs.subspan(1))
        shape = graph::broadcast(shape, operand.extents);
    if (of.chain.rank) graph::require_rank(shape, *of.chain.rank);
    return std::make_shared<fused_rows>(of, inputs, shape);
}

} // namespace maskwise::ort
