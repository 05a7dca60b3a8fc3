#include "fusion/attention_chain.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace maskwise::fusion {
namespace {

bool is_product(const op* op) {
    return op != nullptr && op->kind == op_kind::mat_mul && op->inputs.size() == 2 &&
           op->outputs.size() == 1;
}

bool is_transpose(const op* op) {
    return op != nullptr && op->kind == op_kind::static_transpose;
}

std::vector<int> identity_order(std::size_t rank) {
    std::vector<int> order(rank);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

class attention_finder {
public:
    attention_finder(const row_chain& chain, const match_policy& policy)
        : chain_(chain), policy_(policy) {}

    std::optional<attention_chain> find();

private:
    const op* exclusive_maker(std::size_t value) const;
    bool follow_input(const logical_tensor& input, bool is_transposed, bool may_scale,
                      matrix_input& operand);
    bool take_factor(const op& maker, matrix_input& operand);
    void follow_result();

    const row_chain& chain_;
    const match_policy& policy_;
    attention_chain attention_;
};

// The operator that produces the value, if the value has one consumer and the policy lets a block
// include the operator. Else null.
const op* attention_finder::exclusive_maker(std::size_t value) const {
    const op* const maker = policy_.maker(value);
    const bool is_exclusive = maker != nullptr && policy_.only_reader(value) != nullptr;
    return is_exclusive && policy_.may_take(*maker) ? maker : nullptr;
}

// If the operator multiplies or divides a matrix by a one-element tensor, adds the tensor to the
// factors, sets `operand.tensor` to the matrix, and returns true. Returns false if the one-element
// tensor has more dimensions than the matrix, or if there are max_numbers factors.
bool attention_finder::take_factor(const op& maker, matrix_input& operand) {
    const bool divides = maker.kind == op_kind::divide;
    if (attention_.numbers.size() == max_numbers || (!divides && maker.kind != op_kind::multiply))
        return false;
    const std::size_t number = is_one_element(maker.inputs[1]) ? 1 : 0;
    const logical_tensor &side = maker.inputs[number], &matrix = maker.inputs[1 - number];
    if (!is_one_element(side) || (divides && number == 0) || !matrix.rank_known ||
        side.extents.rank() > matrix.extents.rank() || is_one_element(matrix))
        return false;
    attention_.factors.push_back({divides ? row_operator::divide : row_operator::multiply,
                                  chain_.operands.size() + attention_.numbers.size()});
    attention_.numbers.push_back(side);
    operand.tensor = matrix;
    return true;
}

// Follows a MatMul's input up through transposes and factors. Transposes change `operand.order`.
// Returns false if the input's rank is unknown or below 2, or a transpose's order is invalid.
bool attention_finder::follow_input(const logical_tensor& input, bool is_transposed, bool may_scale,
                                    matrix_input& operand) {
    const int rank = input.extents.rank();
    if (!input.rank_known || rank < 2) return false;
    operand = {input, identity_order(static_cast<std::size_t>(rank))};
    if (is_transposed) std::swap(operand.order.end()[-1], operand.order.end()[-2]);
    for (;;) {
        const op* const maker = policy_.maker(operand.tensor.id);
        if (is_transpose(maker) && !is_order(maker->order)) return false;
        if (maker == nullptr || exclusive_maker(operand.tensor.id) == nullptr) return true;
        if (is_transpose(maker) && maker->order.size() == operand.order.size()) {
            for (int& d : operand.order)
                d = static_cast<int>(maker->order[static_cast<std::size_t>(d)]);
            operand.tensor = maker->inputs[0];
        } else if (!may_scale || !take_factor(*maker, operand)) {
            return true;
        }
        attention_.op_ids.push_back(maker->id);
    }
}

// Follows the result down through StaticTranspose and Reorder operators.
void attention_finder::follow_result() {
    for (;;) {
        const op* const user = policy_.only_reader(attention_.dst);
        if (user == nullptr || !policy_.may_take(*user)) return;
        if (is_transpose(user)) {
            if (user->order.size() != attention_.order.size() || !is_order(user->order)) return;
            attention_.order = joined(attention_.order, user->order);
        } else if (user->kind != op_kind::reorder) {
            return;
        }
        attention_.op_ids.push_back(user->id);
        attention_.dst = user->outputs[0].id;
    }
}

std::optional<attention_chain> attention_finder::find() {
    const op* const scores = exclusive_maker(chain_.scores);
    const op* const product = policy_.only_reader(chain_.result);
    if (!chain_.soft_max || chain_.quantize || !is_product(scores) || !is_product(product) ||
        !policy_.may_take(*product) || scores->outputs[0].type != data_type::f32 ||
        product->transpose_a || product->inputs[0].id != chain_.result)
        return std::nullopt;
    attention_.op_ids = chain_.op_ids;
    attention_.op_ids.insert(attention_.op_ids.end(), {scores->id, product->id});
    attention_.weights_type = product->inputs[0].type;
    attention_.dst = product->outputs[0].id;
    const bool scales = policy_.may_scale_scores();
    if (!follow_input(scores->inputs[0], scores->transpose_a, scales, attention_.query) ||
        !follow_input(scores->inputs[1], !scores->transpose_b, scales, attention_.key) ||
        !follow_input(product->inputs[1], product->transpose_b, false, attention_.value))
        return std::nullopt;
    attention_.order =
        identity_order(std::max({attention_.query.order.size(), attention_.key.order.size(),
                                 attention_.value.order.size()}));
    follow_result();
    return std::move(attention_);
}

} // namespace

bool is_order(const std::vector<std::int64_t>& order) {
    return std::ranges::is_permutation(order, identity_order(order.size()));
}

std::optional<std::vector<int>> order_for(int rank, const std::vector<int>& order) {
    const int known = static_cast<int>(order.size());
    if (rank == known) return order;
    for (int d = 0; d + 2 < known; ++d)
        if (order[static_cast<std::size_t>(d)] != d) return std::nullopt;
    if (rank < 2) return std::nullopt;
    std::vector<int> moved = identity_order(static_cast<std::size_t>(rank));
    for (int d = 1; d <= 2; ++d) moved.end()[-d] = order.end()[-d] - known + rank;
    return moved;
}

std::vector<int> joined(const std::vector<int>& first, const std::vector<std::int64_t>& next) {
    std::vector<int> both;
    both.reserve(next.size());
    for (const std::int64_t d : next) both.push_back(first[static_cast<std::size_t>(d)]);
    return both;
}

std::optional<attention_chain> find_attention(const row_chain& chain, const match_policy& policy) {
    return attention_finder(chain, policy).find();
}

std::optional<attention_chain> find_attention(const std::vector<op>& partition,
                                              const std::vector<std::size_t>& output_ids,
                                              const row_chain& chain) {
    auto attention = find_attention(chain, partition_policy(partition, output_ids));
    const auto leaves = [&](std::size_t id) {
        return id == attention->dst || (chain.statistics && id == chain.statistics->id);
    };
    const bool is_whole = attention && attention->op_ids.size() == partition.size() &&
                          std::ranges::all_of(output_ids, leaves);
    return is_whole ? std::move(attention) : std::nullopt;
}

} // namespace maskwise::fusion
