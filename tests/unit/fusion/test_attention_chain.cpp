#include "fusion/attention_chain.hpp"
#include "fusion/attention_form.hpp"
#include "unit/fusion/chain_graphs.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace maskwise::fusion {
namespace {

using namespace graph;

// Replaces operators 1 and 6 by MatMuls.
partition with_products(partition graph) {
    graph.at(1).kind = graph.at(6).kind = op_kind::mat_mul;
    return graph;
}

std::optional<attention_chain> find(const partition& graph) {
    std::string reason;
    const auto chain = graph.find(reason);
    return chain ? find_attention(graph.ops, graph.outputs, *chain) : std::nullopt;
}

const std::vector<int> in_order{0, 1, 2, 3}, last_two_swapped{0, 1, 3, 2};

TEST(attention_chain, is_a_chain_between_two_products) {
    const auto match = find(with_products(attention()));
    ASSERT_TRUE(match);
    EXPECT_EQ(match->query.tensor.id, query);
    EXPECT_EQ(match->key.tensor.id, key);
    EXPECT_EQ(match->value.tensor.id, value);
    EXPECT_EQ(match->dst, result);
    EXPECT_EQ(match->query.order, in_order);
    EXPECT_EQ(match->key.order, last_two_swapped); // {depth, keys}
    EXPECT_EQ(match->value.order, in_order);
    EXPECT_TRUE(find(with_products(causal())));
}

TEST(attention_chain, follows_transposed_matrices) {
    partition other = with_products(attention());
    other.at(1).transpose_a = other.at(1).transpose_b = other.at(6).transpose_b = true;
    const auto match = find(other);
    ASSERT_TRUE(match);
    EXPECT_EQ(match->query.order, last_two_swapped);
    EXPECT_EQ(match->key.order, in_order);
    EXPECT_EQ(match->value.order, last_two_swapped);
}

TEST(attention_chain, follows_transposes_of_its_inputs) {
    partition moved = with_products(attention());
    op transpose = make(7, op_kind::static_transpose, {tensor(50)}, key);
    transpose.order = {1, 3, 0, 2};
    moved.ops.insert(moved.ops.begin(), transpose);
    const auto match = find(moved);
    ASSERT_TRUE(match);
    EXPECT_EQ(match->key.tensor.id, 50U);
    EXPECT_EQ(match->key.order, (std::vector{1, 3, 2, 0}));
    EXPECT_EQ(match->op_ids.size(), moved.ops.size());
    moved.ops[0].order = {1, 3, 0, 100000};
    EXPECT_FALSE(find(moved));
    moved.ops[0].order = {0, 1}; // a different rank, so the Transpose is not part of the attention
    EXPECT_FALSE(find(moved));
}

TEST(attention_chain, follows_transposes_of_its_result) {
    partition moved = with_products(attention());
    const std::size_t rank = find(moved)->order.size();
    op transpose = make(7, op_kind::static_transpose, {tensor(result)}, 50);
    for (std::size_t d = 0; d < rank; ++d)
        transpose.order.push_back(static_cast<std::int64_t>(rank - 1 - d));
    moved.ops.push_back(transpose);
    moved.ops.push_back(make(8, op_kind::reorder, {tensor(50)}, 51));
    moved.outputs = {51};
    const auto match = find(moved);
    ASSERT_TRUE(match);
    EXPECT_EQ(match->dst, 51U);
    for (std::size_t d = 0; d < rank; ++d)
        EXPECT_EQ(match->order[d], static_cast<int>(rank - 1 - d));
    moved.ops[6].order.assign(rank, 0); // no permutation
    EXPECT_FALSE(find(moved));
}

// After each change, the partition no longer matches attention.
TEST(attention_chain, refuses_other_partitions) {
    const change changes[] = {
        set_kind(1, op_kind::other),
        set_kind(6, op_kind::other),
        [](partition& p) { p.at(6).transpose_a = true; },
        [](partition& p) { p.at(1).outputs[0].type = data_type::bf16; },
        [](partition& p) { p.at(1).inputs.push_back(tensor(40)); }, // a bias of the product
        output(weights),
        [](partition& p) { p.ops.push_back(make(9, op_kind::tanh, {tensor(result)}, 30)); },
        make_inside(key), // the partition computes the keys
        swap_inputs(6, 0, 1),
    };
    for (const change& spoil : changes) {
        partition changed = with_products(attention());
        spoil(changed);
        EXPECT_FALSE(find(changed)) << &spoil - changes;
    }
}

attention_form form_of(const row_chain& chain, const std::vector<bool>& is_number) {
    return make_attention_form(chain, [&](std::size_t i) { return is_number[i]; });
}

TEST(attention_form, scales_caps_and_biases) {
    row_chain chain;
    chain.steps = {row_combine{row_operator::divide, 0}, row_change{row_operator::tanh},
                   row_combine{row_operator::multiply, 0}, row_combine{row_operator::add, 1},
                   row_select{row_operator::select_masked, 2, 3}};
    const auto form = form_of(chain, {true, false, false, true});
    EXPECT_TRUE(form.has_tanh && form.cond_masks && !form.bias_on_fill);
    EXPECT_EQ(form.bias, 1U);
    EXPECT_EQ(form.cond, 2U);
    const float values[] = {4, 0, 0, -1000};
    const auto numbers = attention_numbers_of(form, values);
    EXPECT_EQ(numbers.soft_cap, 4);
    EXPECT_EQ(numbers.scale, 1); // 1 / 4, times the soft cap
    EXPECT_EQ(numbers.fill, -1000);
}

TEST(attention_form, may_lack_a_select) {
    row_chain chain;
    chain.steps = {row_combine{row_operator::multiply, 0}, row_combine{row_operator::add, 1}};
    const auto form = form_of(chain, {true, false});
    EXPECT_TRUE(!form.fill && !form.cond && form.bias == 1U && !form.bias_on_fill);
    const float values[] = {0.5F, -100};
    EXPECT_EQ(attention_numbers_of(form, values).scale, 0.5F);
}

// A division by a power of two from 2^-125 to 2^125 becomes a product, which is exact and faster.
TEST(score_steps, multiply_if_the_divisor_is_a_power_of_two) {
    score_steps steps;
    for (const float number : {8.0F, -0.25F, 0x1p126F, 3.0F, 0x1p127F, 0x1p-126F, 0.0F})
        steps.append({number, true});
    const float products[] = {0.125F, -4.0F};
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_FALSE(steps.factors.at(i).divides);
        EXPECT_EQ(steps.factors.at(i).number, products[i]);
    }
    for (std::size_t i = 2; i < steps.count; ++i) EXPECT_TRUE(steps.factors.at(i).divides) << i;
    EXPECT_EQ(steps.factors.at(3).number, 3);
}

// Uses the maximum number of factors for the chain, the query and the key.
TEST(attention_form, keeps_every_factor) {
    row_chain chain;
    std::vector<float> values(max_row_actions + max_numbers, 1);
    for (std::size_t i = 0; i < max_row_actions; ++i)
        chain.steps.emplace_back(row_combine{row_operator::multiply, i});
    auto form = form_of(chain, std::vector<bool>(values.size(), true));
    for (std::size_t i = max_row_actions; i < values.size(); ++i)
        form.scale.push_back({row_operator::divide, i});
    values.back() = 3; // division by a power of two would become a product
    const auto numbers = attention_numbers_of(form, values);
    ASSERT_EQ(numbers.steps.count, values.size());
    EXPECT_EQ(numbers.steps.factors.at(values.size() - 1).number, 3);
    EXPECT_TRUE(numbers.steps.factors.at(values.size() - 1).divides);
}

// With a cap of 0, the scale is not finite. The separate steps still work.
TEST(attention_form, leaves_a_cap_of_zero_to_the_steps) {
    row_chain chain;
    chain.steps = {row_combine{row_operator::divide, 0}, row_change{row_operator::tanh},
                   row_combine{row_operator::multiply, 0}};
    const float values[] = {0};
    const auto numbers = attention_numbers_of(form_of(chain, {true}), values);
    EXPECT_FALSE(std::isfinite(numbers.scale));
    EXPECT_EQ(numbers.steps.before_tanh, 1U);
    EXPECT_EQ(numbers.steps.count, 2U);
}

// As in GPT, a division and a bias follow the Select, so they change the fill, too.
TEST(attention_form, applies_later_factors_to_the_fill) {
    row_chain chain;
    chain.steps = {row_select{row_operator::select_kept, 0, 1},
                   row_combine{row_operator::divide, 2}, row_combine{row_operator::add, 3}};
    const auto form = form_of(chain, {false, true, true, false});
    EXPECT_TRUE(form.bias_on_fill);
    const float values[] = {0, -100, 8, 0};
    const auto numbers = attention_numbers_of(form, values);
    EXPECT_EQ(numbers.scale, 0.125F);
    EXPECT_EQ(numbers.fill, -12.5F);
}

TEST(attention_form, refuses_steps_that_attention_lacks) {
    const row_select kept{row_operator::select_kept, 0, 1};
    const std::vector<row_step> refused[] = {
        {kept, row_change{row_operator::leaky_relu}},
        {kept, row_change{row_operator::round_bf16}},
        {kept, row_change{row_operator::tanh}},
        {row_combine{row_operator::multiply, 2}, kept}, // the factor is a row
        {row_combine{row_operator::subtract, 1}, kept},
        {row_combine{row_operator::add, 2}, row_combine{row_operator::multiply, 1}, kept},
        {row_combine{row_operator::add, 2}, kept, row_combine{row_operator::add, 2}},
        {row_select{row_operator::select_kept, 0, 2}},
    };
    for (const auto& steps : refused) {
        row_chain chain;
        chain.steps = steps;
        EXPECT_THROW(form_of(chain, {false, true, false}), argument_error) << &steps - refused;
    }
}

} // namespace
} // namespace maskwise::fusion
