#include "fused_plan.hpp"

#include "api/run_measured.hpp"
#include "attention/run_attention.hpp"
#include "tensor/broadcast.hpp"
#include "tensor/tensor_desc.hpp"

namespace maskwise::ort {
namespace {

// The input with its dimensions in another order.
tensor_desc view_of(const fusion& of, const tensor_desc& input, std::span<const int> order) {
    require_rank(of, input.extents, order.size());
    const tensor_desc dense = dense_desc(input.type, input.extents);
    tensor_desc view{input.type, {}, {}};
    for (const int d : order) {
        view.extents.push_back(dense.extents[d]);
        view.strides_bytes.push_back(dense.strides_bytes[d]);
    }
    return view;
}

// Repeats dimensions of extent 1, and those that are missing, as far as `to` has more.
void expand(tensor_desc& view, const dims& to) {
    const int missing = to.rank() - view.extents.rank();
    dims strides(to.rank(), 0);
    for (int d = 0; d < view.extents.rank(); ++d)
        if (view.extents[d] == to[missing + d]) strides[missing + d] = view.strides_bytes[d];
    view.extents = to;
    view.strides_bytes = strides;
}

std::int64_t from_end(const tensor_desc& operand, int back) {
    return operand.extents[operand.extents.rank() - back];
}

dims outer_of(const dims& extents) {
    return dims(std::span(extents.begin(), static_cast<std::size_t>(extents.rank() - 2)));
}

dims with_matrix(dims outer, std::int64_t rows, std::int64_t columns) {
    outer.push_back(rows);
    outer.push_back(columns);
    return outer;
}

dims join_outer(const fusion& of, const tensor_desc& a, const tensor_desc& b) {
    const auto joined = broadcast_numpy(outer_of(a.extents), outer_of(b.extents));
    if (!joined) refuse_shapes(of, a.extents, b.extents);
    return *joined;
}

// A cond or a bias may have more heads, rows and keys than the product of query and key.
void describe_scores(const fusion& of, std::span<const tensor_desc> operands,
                     attention_desc& desc) {
    const auto& form = of.attention->form;
    tensor_desc &query = desc.query, &key = desc.key;
    dims scores = with_matrix(join_outer(of, query, key), from_end(query, 2), from_end(key, 2));
    const auto take = [&](const std::optional<std::size_t>& operand, tensor_desc& to) {
        if (!operand) return;
        to = operands[*operand];
        scores = broadcast_in(of, scores, to.extents);
    };
    take(form.cond, desc.cond);
    take(form.bias, desc.bias);
    require_rank_of_soft_max(of, scores);
    const int rank = scores.rank();
    expand(query, with_matrix(outer_of(scores), scores[rank - 2], from_end(query, 1)));
    expand(key, with_matrix(outer_of(key.extents), scores[rank - 1], from_end(key, 1)));
}

// The result, which lies in the output in another order. Returns the output's shape.
dims describe_result(const fusion& of, attention_desc& desc) {
    const dims result = with_matrix(join_outer(of, desc.query, desc.value), from_end(desc.query, 2),
                                    from_end(desc.value, 1));
    const auto& order = of.attention->dst_order;
    require_rank(of, result, order.size());
    dims output;
    for (const int d : order) output.push_back(result[d]);
    const dims strides = dense_desc(of.type, output).strides_bytes;
    desc.dst = {of.type, result, dims(result.rank(), 0)};
    for (std::size_t d = 0; d < order.size(); ++d)
        desc.dst.strides_bytes[order[d]] = strides[static_cast<int>(d)];
    return output;
}

// With more dimensions it would give the result more, too.
void require_number(const fusion& of, const dims& shape, int most_rank) {
    if (element_count(shape) != 1 || shape.rank() > most_rank)
        throw invalid_shape("Maskwise, around " + of.name + ": " + to_string(shape) +
                            ", by the model one element of at most " + std::to_string(most_rank) +
                            " dimensions");
}

class fused_attention_plan : public fused_plan {
public:
    fused_attention_plan(const fusion& of, std::span<const tensor_desc> inputs)
        : of_(of), operands_(inputs.begin() + 3, inputs.end()) {
        const fused_attention& attention = *of.attention;
        attention_desc desc;
        desc.query = view_of(of, inputs[0], attention.query_order);
        desc.key = view_of(of, inputs[1], attention.key_order);
        desc.value = view_of(of, inputs[2], attention.value_order);
        describe_scores(of, operands_, desc);
        shape_ = describe_result(of, desc);
        desc.cond_masks = attention.form.cond_masks;
        desc.bias_on_fill = attention.form.bias_on_fill;
        desc.nan_as_zero = of.chain.soft_max->nan_as_zero;
        desc.scale = 1; // given at execution
        plan_ = make_attention_plan(desc, active_isa());
    }

    const dims& shape() const override { return shape_; }

    void run(std::span<const void* const> inputs, void* output, const parallel_loop& loop,
             session_facts& session) const override {
        const auto& form = of_.attention->form;
        const auto operands = inputs.subspan(3);
        const auto address = [&](const std::optional<std::size_t>& operand) {
            return operand ? operands[*operand] : nullptr;
        };
        const attention_operands at{.query = inputs[0],
                                    .key = inputs[1],
                                    .value = inputs[2],
                                    .cond = address(form.cond),
                                    .bias = address(form.bias),
                                    .dst = output};
        const attention_numbers numbers = graph::attention_numbers_of(form, floats(operands), 0);
        const parallel_loop* const threads = pays_threads() ? &loop : nullptr;
        session.lend_scratch([&](std::unique_ptr<attention_scratch>& memory) {
            run_measured(*plan_, [&] { run_attention(*plan_, at, numbers, threads, memory); });
        });
    }

private:
    // A session's threads wait awake unless it says otherwise, so one more pays sooner than one of
    // oneTBB's.
    bool pays_threads() const {
        constexpr double from_products = 1 << 16;
        return products_of(*plan_) >= from_products;
    }

    // Every operand but cond and bias is one.
    std::vector<float> floats(std::span<const void* const> at) const {
        const auto& form = of_.attention->form;
        std::vector<float> all(at.size());
        for (std::size_t i = 0; i < at.size(); ++i) {
            if (i == form.cond || i == form.bias) continue;
            require_number(of_, operands_[i].extents, shape_.rank());
            all[i] = number_at(*plan_, operands_[i].type, at[i]);
        }
        return all;
    }

    const fusion& of_;
    std::vector<tensor_desc> operands_;
    dims shape_;
    std::shared_ptr<const attention_data> plan_;
};

} // namespace

std::shared_ptr<const fused_plan> make_fused_attention(const fusion& of,
                                                       std::span<const tensor_desc> inputs) {
    return std::make_shared<fused_attention_plan>(of, inputs);
}

} // namespace maskwise::ort
