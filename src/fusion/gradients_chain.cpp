#include "fusion/gradients_chain.hpp"

#include "fusion/chain_finder.hpp"

#include <algorithm>
#include <set>

namespace maskwise::fusion {
namespace {

void require(bool holds, const char* reason_against) {
    if (!holds) throw no_chain{reason_against};
}

// Whether the operator sums along this dimension, counted from the end, and keeps it with extent 1.
bool sums_along(const op& sum, std::int64_t from_end) {
    const auto& input = sum.inputs[0];
    return sum.keeps_dims && input.rank_known && sum.axes.size() == 1 &&
           (sum.axes[0] == -from_end || sum.axes[0] == input.extents.rank() - from_end);
}

void erase_operand(row_chain& rows, std::size_t operand) {
    rows.operands.erase(rows.operands.begin() + static_cast<std::ptrdiff_t>(operand));
    const auto renumber = [&](std::size_t& index) { index -= index > operand ? 1 : 0; };
    for (row_step& step : rows.steps) {
        if (auto* const combine = std::get_if<row_combine>(&step)) renumber(combine->side);
        if (auto* const select = std::get_if<row_select>(&step)) {
            if (select->cond) renumber(*select->cond);
            renumber(select->side);
        }
    }
}

class gradients_finder {
public:
    gradients_finder(const std::vector<op>& ops, const std::vector<std::size_t>& output_ids)
        : ops_(ops), output_ids_(output_ids), policy_(ops, output_ids) {}

    gradients_chain find() {
        const auto exp = std::ranges::find(ops_, op_kind::exp, &op::kind);
        require(exp != ops_.end(), "the partition has no Exp");
        take_f32(&*exp, op_kind::exp);
        take_scores(exp->inputs[0].id);
        take_weights(exp->outputs[0].id);
        require(sums_ % 2 == 0, "only one gradient of key and value is a sum over heads");
        chain_.grouped_queries = sums_ == 2;
        require_whole();
        return std::move(chain_);
    }

private:
    const op& take(const op* op, op_kind kind);
    const op& take_f32(const op* op, op_kind kind);
    const op& take_product(const op* product, bool transpose_a, bool transpose_b);
    void take_input(const logical_tensor& input, logical_tensor& target) const;
    std::size_t take_cast(std::size_t value);
    std::size_t take_group_sum(std::size_t gradient);
    const op& start_of_rows(std::size_t exponent) const;
    void take_scores(std::size_t exponent);
    void take_weights(std::size_t weights);
    const op& take_score_gradient(std::size_t weights, const op& product);
    void take_delta(const op& sum);
    std::size_t take_scale(std::size_t gradient);
    void take_products(std::size_t gradient);
    void require_whole() const;

    const std::vector<op>& ops_;
    const std::vector<std::size_t>& output_ids_;
    partition_policy policy_;
    gradients_chain chain_;
    std::set<std::size_t> taken_, results_;
    std::size_t sums_ = 0; // gradients that are summed over a group's heads
};

const op& gradients_finder::take(const op* op, op_kind kind) {
    require(op != nullptr && op->kind == kind && op->outputs.size() == 1,
            "the operators do not compute attention's gradients");
    taken_.insert(op->id);
    return *op;
}

const op& gradients_finder::take_f32(const op* op, op_kind kind) {
    const auto& taken = take(op, kind);
    require(taken.outputs[0].type == data_type::f32, "a value between operators is not f32");
    return taken;
}

const op& gradients_finder::take_product(const op* product, bool transpose_a, bool transpose_b) {
    const auto& taken = take(product, op_kind::mat_mul);
    require(taken.inputs.size() == 2 && taken.transpose_a == transpose_a &&
                taken.transpose_b == transpose_b,
            "a MatMul has a bias or unexpected transposes");
    return taken;
}

// Sets `target` to the input. If `target` is already set, both must be the same tensor.
void gradients_finder::take_input(const logical_tensor& input, logical_tensor& target) const {
    require(policy_.maker(input.id) == nullptr, "a matrix is computed in the partition");
    require(!target.rank_known || target.id == input.id, "two MatMuls read different matrices");
    require(input.rank_known, "a rank is not known");
    target = input;
}

// Returns the TypeCast's result if a TypeCast is the value's only consumer, else the value.
std::size_t gradients_finder::take_cast(std::size_t value) {
    const op* const user = policy_.only_reader(value);
    if (user == nullptr || user->kind != op_kind::type_cast) return value;
    return take(user, op_kind::type_cast).outputs[0].id;
}

// Returns the gradient's sum over a group's heads if the graph computes this sum, else the
// gradient.
std::size_t gradients_finder::take_group_sum(std::size_t gradient) {
    const op* const user = policy_.only_reader(gradient);
    results_.insert(user == nullptr ? gradient : user->outputs[0].id);
    if (user == nullptr) return gradient;
    const op& sum = take(user, op_kind::reduce_sum);
    require(sums_along(sum, 3), "a gradient is summed over a dimension other than heads");
    require(sums_ == 0 || sum.inputs[0].type == chain_.head_type,
            "gradients of heads have two types");
    ++sums_;
    chain_.head_type = sum.inputs[0].type;
    return sum.outputs[0].id;
}

// Returns the operator from which find_chain() searches the row chain: the Select before Exp, else
// the Subtract of the statistics. Only a search from the Select finds a causal mask.
const op& gradients_finder::start_of_rows(std::size_t exponent) const {
    const op* const subtract = policy_.maker(exponent);
    require(subtract != nullptr && subtract->kind == op_kind::subtract,
            "no statistics are subtracted before Exp");
    for (const op* maker = subtract; maker != nullptr && maker->kind != op_kind::mat_mul;) {
        if (maker->kind == op_kind::select) return *maker;
        const auto row = std::ranges::find_if(
            maker->inputs, [&](const auto& input) { return policy_.maker(input.id) != nullptr; });
        maker = row == maker->inputs.end() ? nullptr : policy_.maker(row->id);
    }
    return *subtract;
}

void gradients_finder::take_scores(std::size_t exponent) {
    row_chain& rows = chain_.rows = find_chain(start_of_rows(exponent), policy_);
    const auto* const last =
        rows.steps.empty() ? nullptr : std::get_if<row_combine>(&rows.steps.back());
    require(rows.result == exponent && last != nullptr && last->op == row_operator::subtract,
            "the statistics are not subtracted last");
    const std::size_t statistics = last->side;
    take_input(rows.operands[statistics], chain_.statistics);
    rows.steps.pop_back();
    erase_operand(rows, statistics);
    taken_.insert(rows.op_ids.begin(), rows.op_ids.end());
    const op& product = take_product(policy_.maker(rows.scores), false, true);
    take_f32(&product, op_kind::mat_mul);
    take_input(product.inputs[0], chain_.query);
    take_input(product.inputs[1], chain_.key);
}

void gradients_finder::take_weights(std::size_t weights) {
    const auto users = policy_.values().users(weights);
    require(users.size() == 2 && !policy_.leaves(weights), "the weights have other readers");
    const op *value_user = users[0], *score_user = users[1];
    if (value_user->kind == op_kind::multiply) std::swap(value_user, score_user);
    std::size_t cast = weights;
    if (value_user->kind == op_kind::type_cast) {
        cast = take(value_user, op_kind::type_cast).outputs[0].id;
        value_user = policy_.only_reader(cast);
    }
    const op& product = take_product(value_user, true, false);
    require(product.inputs[0].id == cast, "the weights are not the first input of their MatMul");
    take_input(product.inputs[1], chain_.dst_gradient);
    chain_.value_gradient = take_group_sum(product.outputs[0].id);
    const op& gradient = take_score_gradient(weights, take_f32(score_user, op_kind::multiply));
    take_products(take_cast(take_scale(gradient.outputs[0].id)));
}

const op& gradients_finder::take_score_gradient(std::size_t weights, const op& product) {
    const std::size_t other = product.inputs[0].id == weights ? 1 : 0;
    const op& difference = take_f32(policy_.maker(product.inputs[other].id), op_kind::subtract);
    require(policy_.only_reader(difference.outputs[0].id) == &product,
            "the scores' gradients have other readers");
    const op& values = take_product(policy_.maker(difference.inputs[0].id), false, true);
    take_f32(&values, op_kind::mat_mul);
    take_input(values.inputs[0], chain_.dst_gradient);
    take_input(values.inputs[1], chain_.value);
    take_delta(take_f32(policy_.maker(difference.inputs[1].id), op_kind::reduce_sum));
    return product;
}

void gradients_finder::take_delta(const op& sum) {
    require(sums_along(sum, 1), "the products of dst and its gradient are not summed row by row");
    const op& product = take_f32(policy_.maker(sum.inputs[0].id), op_kind::multiply);
    const bool is_first = product.inputs[0].id == chain_.dst_gradient.id;
    take_input(product.inputs[is_first ? 0 : 1], chain_.dst_gradient);
    take_input(product.inputs[is_first ? 1 : 0], chain_.dst);
}

// The gradient must be scaled by the same factors as the scores, in the same order.
std::size_t gradients_finder::take_scale(std::size_t gradient) {
    for (const row_step& step : chain_.rows.steps) {
        const auto* const factor = std::get_if<row_combine>(&step);
        if (factor == nullptr || factor->op == row_operator::add) continue;
        const bool divides = factor->op == row_operator::divide;
        const op& user =
            take_f32(policy_.only_reader(gradient), divides ? op_kind::divide : op_kind::multiply);
        const std::size_t side = user.inputs[1].id == gradient ? 0 : 1;
        require(user.inputs[side].id == chain_.rows.operands[factor->side].id &&
                    (!divides || side == 1),
                "the gradients and the scores have different scales");
        gradient = user.outputs[0].id;
    }
    return gradient;
}

void gradients_finder::take_products(std::size_t gradient) {
    const auto users = policy_.values().users(gradient);
    require(users.size() == 2 && users[0]->transpose_a != users[1]->transpose_a,
            "the scores' gradients are not multiplied by keys and by queries");
    for (const op* user : users) {
        const op& product = take_product(user, user->transpose_a, false);
        require(product.inputs[0].id == gradient,
                "the scores' gradients are not the first input of their MatMuls");
        take_input(product.inputs[1], user->transpose_a ? chain_.query : chain_.key);
        const std::size_t result = product.outputs[0].id;
        if (user->transpose_a)
            chain_.key_gradient = take_group_sum(result);
        else
            results_.insert(chain_.query_gradient = result);
    }
}

void gradients_finder::require_whole() const {
    require(taken_.size() == ops_.size(), "some operators are not part of the gradients");
    require(std::set(output_ids_.begin(), output_ids_.end()) == results_,
            "the outputs are not the gradients");
}

} // namespace

std::vector<std::size_t> gradients_chain::inputs() const {
    std::vector<std::size_t> ids{query.id, key.id,          value.id,
                                 dst.id,   dst_gradient.id, statistics.id};
    for (const auto& operand : rows.operands) ids.push_back(operand.id);
    for (const auto& term : rows.causal_offset) ids.push_back(term.tensor.id);
    return ids;
}

std::optional<gradients_chain> find_gradients(const std::vector<op>& ops,
                                              const std::vector<std::size_t>& output_ids,
                                              std::string& reason) {
    try {
        return gradients_finder(ops, output_ids).find();
    } catch (const no_chain& none) {
        reason = none.reason;
        return std::nullopt;
    }
}

} // namespace maskwise::fusion
