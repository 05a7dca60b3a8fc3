#include "find_attention.hpp"

#include "graph/attention_chain.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace maskwise::ort {
namespace {

using graph::op_kind;

bool is_kind(const graph::op* op, op_kind kind) {
    return op != nullptr && op->kind == kind;
}

// A Transpose with another `perm` is left to ONNX Runtime, which runs it in part, and what reads
// it.
bool is_broken(const graph::op* op) {
    if (!is_kind(op, op_kind::static_transpose)) return false;
    std::vector<std::int64_t> dimensions(op->order.size());
    std::iota(dimensions.begin(), dimensions.end(), 0);
    return !std::ranges::is_permutation(op->order, dimensions);
}

// The operator that makes a value which only this chain reads.
const graph::op* own_maker(const fusion_rules& rules, std::size_t value) {
    const graph::op* const maker = rules.maker(value);
    const bool is_own = maker != nullptr && rules.only_reader(value) != nullptr;
    return is_own && rules.may_take(*maker) ? maker : nullptr;
}

class attention_finder {
public:
    attention_finder(const fusion_ops& ops, const fusion_rules& rules,
                     const graph::row_chain& chain)
        : ops_(ops), rules_(rules), chain_(chain) {}

    std::optional<found_attention> find();

private:
    bool collect();
    bool follow_input(const graph::matrix_input& input, bool may_scale, std::vector<int>& order);
    bool take_transpose(const graph::op& transpose, std::vector<int>& order);
    bool take_factor(const graph::op& maker);
    bool masks_fit(int rank) const;
    static bool pays(const graph::attention_chain& whole, bool is_masked);
    std::vector<tensor_desc> known_operands() const;
    void add_input(std::size_t value) {
        found_.form.inputs.emplace_back(name_of(ops_.with(), value_of(value)));
    }

    const fusion_ops& ops_;
    const fusion_rules& rules_;
    const graph::row_chain& chain_;
    std::vector<graph::op> members_; // of the chain, both products and what moves the result
    std::size_t input_ = 0;          // as far as one was followed
    std::vector<graph::attention_form::factor> factors_;
    std::vector<std::size_t> factor_values_;
    found_attention found_;
};

bool attention_finder::collect() {
    for (const std::size_t id : chain_.op_ids) members_.push_back(ops_[id]);
    const graph::op* const scores = own_maker(rules_, chain_.scores);
    const graph::op* product = rules_.only_reader(chain_.result);
    if (!is_kind(scores, op_kind::mat_mul) || !is_kind(product, op_kind::mat_mul) ||
        !rules_.may_take(*product))
        return false;
    members_.push_back(*scores);
    members_.push_back(*product);
    const graph::op* moved = rules_.only_reader(product->outputs[0].id);
    if (is_kind(moved, op_kind::static_transpose) && rules_.may_take(*moved) && !is_broken(moved))
        members_.push_back(*moved);
    for (const graph::op& member : members_) found_.op_ids.push_back(member.id);
    return true;
}

// Of another rank it stays outside.
bool attention_finder::take_transpose(const graph::op& transpose, std::vector<int>& order) {
    if (transpose.order.size() != order.size()) return false;
    for (int& d : order) d = static_cast<int>(transpose.order[static_cast<std::size_t>(d)]);
    input_ = transpose.inputs[0].id;
    return true;
}

// A number that multiplies or divides the matrix, and leaves its rank.
bool attention_finder::take_factor(const graph::op& maker) {
    const bool divides = maker.kind == op_kind::divide;
    if (!divides && maker.kind != op_kind::multiply) return false;
    const std::size_t number = is_one_element(maker.inputs[1]) ? 1 : 0;
    const graph::logical_tensor &side = maker.inputs[number], &matrix = maker.inputs[1 - number];
    if (!is_one_element(side) || (divides && number == 0) || !matrix.rank_known ||
        side.extents.rank() > matrix.extents.rank() || is_one_element(matrix))
        return false;
    factors_.push_back({chain_.operands.size() + factors_.size(), divides});
    factor_values_.push_back(side.id);
    input_ = matrix.id;
    return true;
}

// From a MatMul's input up through what becomes strides or a factor.
bool attention_finder::follow_input(const graph::matrix_input& input, bool may_scale,
                                    std::vector<int>& order) {
    const int rank = input.tensor.extents.rank();
    if (rank < 2) return false;
    order.resize(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    if (input.is_turned) std::swap(order[order.size() - 1], order[order.size() - 2]);
    input_ = input.tensor.id;
    for (;;) {
        if (is_broken(rules_.maker(input_))) return false;
        const graph::op* const maker = own_maker(rules_, input_);
        const bool is_taken = is_kind(maker, op_kind::static_transpose)
                                  ? take_transpose(*maker, order)
                                  : maker != nullptr && may_scale && take_factor(*maker);
        if (!is_taken) break;
        found_.op_ids.push_back(maker->id);
    }
    add_input(input_);
    return true;
}

// The result has the MatMuls' rank.
bool attention_finder::masks_fit(int rank) const {
    return std::ranges::all_of(chain_.operands, [&](const graph::logical_tensor& operand) {
        return operand.rank_known && operand.extents.rank() <= rank;
    });
}

// Measured: of deeper heads ONNX Runtime's MatMuls are faster by more than unwritten scores save,
// unless a mask spares a part of them.
bool attention_finder::pays(const graph::attention_chain& whole, bool is_masked) {
    constexpr std::int64_t most_depth = 64, most_depth_masked = 128;
    const dims &query = whole.query.tensor.extents, &key = whole.key.tensor.extents;
    const std::int64_t depth = query[query.rank() - 1];
    const std::int64_t same_depth = key[key.rank() - (whole.key.is_turned ? 2 : 1)];
    const std::int64_t known = std::max(depth, same_depth);
    return is_masked ? known <= most_depth_masked : known > 0 && known <= most_depth;
}

// What is not known to be a number is none.
std::vector<tensor_desc> attention_finder::known_operands() const {
    std::vector<tensor_desc> operands;
    for (const auto& operand : chain_.operands)
        operands.push_back({operand.type, is_one_element(operand) ? dims{} : dims{2}});
    return operands;
}

std::optional<found_attention> attention_finder::find() {
    if (!collect()) return std::nullopt;
    const std::size_t output = members_.back().outputs[0].id;
    const auto whole = graph::find_attention(members_, std::span(&output, 1), chain_);
    if (!whole || !masks_fit(static_cast<int>(whole->order.size()))) return std::nullopt;
    fused_attention attention;
    try {
        attention.form = graph::make_attention_form(chain_, known_operands());
    } catch (const error&) {
        return std::nullopt;
    }
    if (!follow_input(whole->query, true, attention.query_order) ||
        !follow_input(whole->key, true, attention.key_order) ||
        !follow_input(whole->value, false, attention.value_order) ||
        !pays(*whole, attention.form.cond || attention.form.bias))
        return std::nullopt;
    for (const auto& operand : chain_.operands) add_input(operand.id);
    for (const std::size_t value : factor_values_) add_input(value);
    auto& scale = attention.form.scale;
    scale.insert(scale.end(), factors_.begin(), factors_.end());
    attention.dst_order = whole->order;
    found_.result = whole->dst;
    found_.form.chain = chain_;
    found_.form.attention = std::move(attention);
    return std::move(found_);
}

} // namespace

std::optional<found_attention> find_attention(const fusion_ops& ops, const fusion_rules& rules,
                                              const graph::row_chain& chain) {
    return attention_finder(ops, rules, chain).find();
}

} // namespace maskwise::ort
