#include "fusion/fused_attention.hpp"

#include "attention/attention_checks.hpp"
#include "base/cpu.hpp"
#include "base/error.hpp"
#include "tensor/broadcast.hpp"
#include "tensor/data_type.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace maskwise::fusion {
namespace {

static_assert(max_row_actions + max_numbers <= max_score_factors); // of scores, query and key

[[noreturn]] void refuse_pair(const dims& a, const dims& b) {
    throw invalid_shape(to_string(a) + " and " + to_string(b) + " do not broadcast");
}

// The order for this shape. A model may be wrong about a rank that only the last two dimensions of
// the order use.
std::vector<int> order_for(const dims& shape, const std::vector<int>& order) {
    const int rank = shape.rank(), known = static_cast<int>(order.size());
    if (rank == known) return order;
    std::vector<int> moved;
    for (int d = 0; d + 2 < known; ++d)
        if (order[static_cast<std::size_t>(d)] != d) require_rank(shape, known);
    if (rank < 2) require_rank(shape, known);
    for (int d = 0; d + 2 < rank; ++d) moved.push_back(d);
    for (int d = known - 2; d < known; ++d)
        moved.push_back(order[static_cast<std::size_t>(d)] - known + rank);
    return moved;
}

tensor_desc matrix_of(const tensor_desc& input, const matrix_input& from) {
    const auto order = order_for(input.extents, from.order);
    const tensor_desc whole = with_strides(input);
    tensor_desc matrix{input.type, {}, {}};
    for (const int d : order) {
        matrix.extents.push_back(whole.extents[d]);
        matrix.strides_bytes.push_back(whole.strides_bytes[d]);
    }
    return matrix;
}

// Repeats dimensions of extent 1, and those that are missing, as far as `to` has more.
void expand(tensor_desc& matrix, const dims& to) {
    const int missing = to.rank() - matrix.extents.rank();
    dims strides = dims::filled(to.rank(), 0);
    for (int d = 0; d < matrix.extents.rank(); ++d)
        if (matrix.extents[d] == to[missing + d]) strides[missing + d] = matrix.strides_bytes[d];
    matrix.extents = to;
    matrix.strides_bytes = strides;
}

std::int64_t from_end(const tensor_desc& operand, int back) {
    return operand.extents[operand.extents.rank() - back];
}

dims without_last(const dims& extents, int count) {
    return dims(std::span(extents.begin(), static_cast<std::size_t>(extents.rank() - count)));
}

dims with_matrix(dims outer, std::int64_t rows, std::int64_t columns) {
    outer.push_back(rows);
    outer.push_back(columns);
    return outer;
}

dims join_outer(const tensor_desc& a, const tensor_desc& b) {
    const auto joined = broadcast_numpy(without_last(a.extents, 2), without_last(b.extents, 2));
    if (!joined) refuse_pair(a.extents, b.extents);
    return *joined;
}

bool is_one_number(const tensor_desc& operand) {
    return element_count(operand.extents) == 1 && computes_in_f32(operand.type);
}

} // namespace

dims broadcast(const dims& a, const dims& b) {
    const auto joined = broadcast_numpy(a, b);
    if (!joined) refuse_pair(a, b);
    return *joined;
}

void require_rank(const dims& shape, int rank) {
    if (shape.rank() != rank)
        throw invalid_shape(to_string(shape) + ", by the model of " + std::to_string(rank) +
                            " dimensions");
}

fused_attention::fused_attention(const block& of, std::span<const tensor_desc> inputs)
    : desc_(std::make_unique<attention_desc>()), boundary_(of.rows.boundary) {
    const row_chain& chain = of.rows;
    const attention_chain& attention = *of.attention;
    const auto operands = inputs.subspan(3, chain.operands.size() + attention.numbers.size());
    form_ = make_attention_form(chain, [&](std::size_t i) { return is_one_number(operands[i]); });
    form_.scale.insert(form_.scale.end(), attention.factors.begin(), attention.factors.end());
    for (const tensor_desc& term : inputs.subspan(3 + operands.size())) require_boundary_term(term);
    desc_->query = matrix_of(inputs[0], attention.query);
    desc_->key = matrix_of(inputs[1], attention.key);
    desc_->value = matrix_of(inputs[2], attention.value);
    describe_scores(chain, operands);
    describe_result(attention);
    take_numbers(operands);
    desc_->cond_masks = form_.cond_masks;
    desc_->bias_on_fill = form_.bias_on_fill;
    if (form_.is_causal) desc_->causal = causal_boundary::top_left; // moved in every execution
    desc_->inf_as_zero = chain.soft_max->inf_as_zero;
    desc_->nan_as_zero = chain.soft_max->nan_as_zero;
    desc_->scale = 1; // given at execution
    desc_->weights_type = attention.weights_type;
}

// A cond or a bias may have more heads, rows and keys than the product of query and key.
void fused_attention::describe_scores(const row_chain& chain,
                                      std::span<const tensor_desc> operands) {
    tensor_desc &query = desc_->query, &key = desc_->key;
    dims scores = with_matrix(join_outer(query, key), from_end(query, 2), from_end(key, 2));
    const auto take = [&](const std::optional<std::size_t>& operand, tensor_desc& to) {
        if (!operand) return;
        to = operands[*operand];
        scores = broadcast(scores, to.extents);
    };
    take(form_.cond, desc_->cond);
    take(form_.bias, desc_->bias);
    if (chain.rank) require_rank(scores, *chain.rank);
    const int rank = scores.rank();
    expand(query, with_matrix(without_last(scores, 2), scores[rank - 2], from_end(query, 1)));
    expand(key, with_matrix(without_last(key.extents, 2), scores[rank - 1], from_end(key, 1)));
}

// Extents of the tensor that leaves: the result, moved.
void fused_attention::describe_result(const attention_chain& attention) {
    const dims result = with_matrix(join_outer(desc_->query, desc_->value),
                                    from_end(desc_->query, 2), from_end(desc_->value, 1));
    dst_order_ = order_for(result, attention.order);
    for (const int d : dst_order_) dst_.push_back(result[d]);
}

// Every operand but cond and bias. With more dimensions it would give the result more, too.
void fused_attention::take_numbers(std::span<const tensor_desc> operands) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const bool is_number = i != form_.cond && i != form_.bias;
        number_types_.push_back(is_number ? operands[i].type : data_type::undef);
        if (is_number && (!is_one_number(operands[i]) || operands[i].extents.rank() > dst_.rank()))
            throw invalid_shape(to_string(operands[i].extents) +
                                ", by the model one element of at most " +
                                std::to_string(dst_.rank()) + " dimensions");
    }
}

dims fused_attention::statistics() const {
    dims result = dims::filled(dst_.rank(), 0);
    for (std::size_t d = 0; d < dst_order_.size(); ++d)
        result[dst_order_[d]] = dst_[static_cast<int>(d)];
    result[result.rank() - 1] = 1;
    return result;
}

void fused_attention::plan(attention_order order, const tensor_desc& dst,
                           const tensor_desc& statistics) {
    desc_->order = order;
    desc_->dst = dst;
    for (std::size_t d = 0; d < dst_order_.size(); ++d) {
        desc_->dst.extents[dst_order_[d]] = dst.extents[static_cast<int>(d)];
        desc_->dst.strides_bytes[dst_order_[d]] = dst.strides_bytes[static_cast<int>(d)];
    }
    if (statistics.type != data_type::undef)
        desc_->statistics = {statistics.type, without_last(statistics.extents, 1),
                             without_last(statistics.strides_bytes, 1)};
    plan_ = make_attention_plan(*desc_, active_isa());
    desc_.reset();
}

fused_attention::call fused_attention::bind(std::span<const void* const> inputs, void* dst,
                                            void* statistics) const {
    const auto operands = inputs.subspan(3, number_types_.size());
    const auto address = [&](const std::optional<std::size_t>& operand) {
        return operand ? operands[*operand] : nullptr;
    };
    const attention_operands at{inputs[0],           inputs[1], inputs[2], address(form_.cond),
                                address(form_.bias), dst,       statistics};
    require_addresses(plan_->desc, at);
    std::array<float, max_row_operands + max_numbers> values{};
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (number_types_[i] == data_type::undef) continue;
        if (operands[i] == nullptr)
            throw invalid_argument("operand " + std::to_string(i) + " of attention has no memory");
        values[i] = number_at(*plan_, number_types_[i], operands[i]);
    }
    const std::int64_t boundary = boundary_of(boundary_, inputs.subspan(3 + operands.size()));
    return {at, attention_numbers_of(form_, values, boundary)};
}

} // namespace maskwise::fusion
