#include "fusion/gradients_chain.hpp"
#include "unit/fusion/chain_graphs.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace maskwise::fusion {
namespace {

using namespace graph;

// Tensors that attention's forward graph does not have.
constexpr std::size_t dst = 50, dst_gradient = 51, subtracted = 52, exponentials = 53, rounded = 54,
                      value_gradients = 55, weight_gradients = 56, products = 57, sums = 58,
                      differences = 59, score_gradients = 60, product_gradients = 61,
                      rounded_gradients = 62, query_gradients = 63, key_gradients = 64,
                      value_sums = 65, key_sums = 66;
const dims per_row{1, 4, 8, 1};

op product(std::size_t id, std::vector<logical_tensor> inputs, std::size_t output, bool a, bool b) {
    op product = make(id, op_kind::mat_mul, std::move(inputs), output);
    product.transpose_a = a;
    product.transpose_b = b;
    return product;
}

op sum(std::size_t id, std::size_t input, std::size_t output, std::int64_t axis) {
    op sum = make(id, op_kind::reduce_sum, {tensor(input)}, output);
    sum.axes = {axis};
    sum.keeps_dims = true;
    return sum;
}

// Gradients of attention with a scale, a bias and an input mask.
partition gradients() {
    return {
        {product(1, {tensor(query), tensor(key)}, scores, false, true),
         make(2, op_kind::divide, {tensor(scores), tensor(factor, {1})}, scaled),
         make(3, op_kind::select, {tensor(mask), tensor(scaled), tensor(fill, {})}, selected),
         make(4, op_kind::add, {tensor(selected), tensor(bias)}, added),
         make(5, op_kind::subtract, {tensor(added), tensor(statistics, per_row)}, subtracted),
         make(6, op_kind::exp, {tensor(subtracted)}, exponentials),
         make(7, op_kind::type_cast, {tensor(exponentials)}, rounded),
         product(8, {tensor(rounded), tensor(dst_gradient)}, value_gradients, true, false),
         product(9, {tensor(dst_gradient), tensor(value)}, weight_gradients, false, true),
         make(10, op_kind::multiply, {tensor(dst), tensor(dst_gradient)}, products),
         sum(11, products, sums, -1),
         make(12, op_kind::subtract, {tensor(weight_gradients), tensor(sums)}, differences),
         make(13, op_kind::multiply, {tensor(exponentials), tensor(differences)}, score_gradients),
         make(14, op_kind::divide, {tensor(score_gradients), tensor(factor, {1})},
              product_gradients),
         make(15, op_kind::type_cast, {tensor(product_gradients)}, rounded_gradients),
         product(16, {tensor(rounded_gradients), tensor(key)}, query_gradients, false, false),
         product(17, {tensor(rounded_gradients), tensor(query)}, key_gradients, true, false)},
        {query_gradients, key_gradients, value_gradients}};
}

change append(const op& more) {
    return [=](partition& p) { p.ops.push_back(more); };
}

change set_type(std::size_t op, data_type type) {
    return [=](partition& p) { p.at(op).outputs[0].type = type; };
}

// Removes an operator. Its consumers then read its first input, or src_0 of a Select.
change leave_out(std::size_t id) {
    return [=](partition& p) {
        const op out = p.at(id);
        std::erase_if(p.ops, [&](const op& each) { return each.id == id; });
        for (op& each : p.ops)
            for (logical_tensor& input : each.inputs)
                if (input.id == out.outputs[0].id)
                    input = out.inputs[out.kind == op_kind::select ? 1 : 0];
    };
}

// Gradients with a mask computed from indices.
partition causal_gradients() {
    partition causal = gradients();
    causal.ops.insert(
        causal.ops.begin() + 2,
        {with_axis(make(30, op_kind::gen_index, {tensor(scaled)}, rows_id), -2),
         with_axis(make(31, op_kind::gen_index, {tensor(scaled)}, columns_id), 3),
         make(32, op_kind::add, {tensor(rows_id), tensor(term, {})}, moved),
         make(33, op_kind::greater_equal, {tensor(moved), tensor(columns_id)}, mask)});
    return causal;
}

std::optional<gradients_chain> find(const partition& p, std::string& reason) {
    return find_gradients(p.ops, p.outputs, reason);
}

gradients_chain expect_gradients(const partition& p) {
    std::string reason;
    const auto chain = find(p, reason);
    EXPECT_TRUE(chain) << reason;
    return chain.value_or(gradients_chain{});
}

TEST(gradients_chain, names_every_tensor) {
    const gradients_chain chain = expect_gradients(gradients());
    EXPECT_EQ(chain.inputs(), (std::vector<std::size_t>{query, key, value, dst, dst_gradient,
                                                        statistics, mask, fill, bias, factor}));
    EXPECT_EQ(chain.query_gradient, query_gradients);
    EXPECT_EQ(chain.key_gradient, key_gradients);
    EXPECT_EQ(chain.value_gradient, value_gradients);
    EXPECT_FALSE(chain.grouped_queries);
    EXPECT_EQ(chain.rows.steps.size(), 3U);
}

TEST(gradients_chain, has_an_optional_mask_scale_and_casts) {
    const change changes[] = {leave_out(3),
                              leave_out(4),
                              all_of({leave_out(2), leave_out(14)}),
                              leave_out(7),
                              leave_out(15),
                              all_of({leave_out(2), leave_out(3), leave_out(4), leave_out(14)}),
                              swap_inputs(10, 0, 1),
                              swap_inputs(13, 0, 1),
                              set_type(15, data_type::bf16),
                              [](partition& p) { p.at(11).axes = {3}; }};
    for (const change& vary : changes) {
        partition p = gradients();
        vary(p);
        EXPECT_EQ(expect_gradients(p).key_gradient, key_gradients);
    }
}

TEST(gradients_chain, may_have_a_causal_mask) {
    const gradients_chain chain = expect_gradients(causal_gradients());
    EXPECT_TRUE(std::ranges::any_of(chain.rows.steps,
                                    [](const row_step& step) { return is_causal(step); }));
    ASSERT_EQ(chain.rows.causal_offset.size(), 1U);
    EXPECT_EQ(chain.inputs().back(), term);
}

TEST(gradients_chain, sums_over_groups) {
    partition p = gradients();
    p.ops.push_back(sum(18, value_gradients, value_sums, 1));
    p.outputs = {query_gradients, key_gradients, value_sums};
    std::string reason;
    EXPECT_FALSE(find(p, reason)); // only value's gradient is summed
    p.ops.push_back(sum(19, key_gradients, key_sums, -3));
    p.outputs = {query_gradients, key_sums, value_sums};
    EXPECT_TRUE(expect_gradients(p).grouped_queries);
    EXPECT_EQ(expect_gradients(p).head_type, data_type::f32);
    EXPECT_EQ(expect_gradients(p).key_gradient, key_sums);
    p.ops.back().inputs[0].type = data_type::bf16;
    EXPECT_FALSE(find(p, reason)); // value's gradient is f32
    p.at(18).inputs[0].type = data_type::bf16;
    EXPECT_EQ(expect_gradients(p).head_type, data_type::bf16);
    p.ops.back().axes = {0};
    EXPECT_FALSE(find(p, reason));
    p.ops.back().axes = {1};
    p.ops.back().keeps_dims = false;
    EXPECT_FALSE(find(p, reason));
}

// After each change, the partition no longer computes attention's gradients, or an inner value has
// another consumer.
TEST(gradients_chain, refuses_other_partitions) {
    const change changes[] = {
        output(score_gradients), // the gradient of the bias
        output(exponentials),
        append(make(20, op_kind::other, {tensor(subtracted)}, 70)),
        append(make(20, op_kind::other, {tensor(exponentials)}, 70)),
        append(make(20, op_kind::other, {tensor(key_gradients)}, 70)),
        set_kind(7, op_kind::other),  // Dropout of the weights
        set_kind(12, op_kind::other), // Dropout of the weights' gradient
        set_kind(14, op_kind::multiply),
        set_input(14, 1, tensor(71, {1})), // a different scale
        leave_out(14),                     // the scores have a scale, their gradient has none
        leave_out(2),
        swap_inputs(12, 0, 1),
        swap_inputs(5, 0, 1),
        swap_inputs(9, 0, 1),
        set_input(8, 1, tensor(73)), // not dst's gradient
        set_input(16, 1, tensor(value)),
        set_input(17, 1, tensor(dst)),
        set_type(1, data_type::bf16),
        set_type(6, data_type::f16),
        set_type(9, data_type::bf16),
        set_type(13, data_type::bf16),
        make_inside(dst),
        make_inside(query),
        [](partition& p) { p.at(8).transpose_a = false; },
        [](partition& p) { p.at(9).transpose_b = false; },
        [](partition& p) { p.at(16).transpose_b = true; },
        [](partition& p) { p.at(1).inputs.push_back(tensor(74)); }, // a bias of the MatMul
        [](partition& p) { p.at(11).axes = {-2}; },
        [](partition& p) { p.outputs.pop_back(); },
    };
    for (const change& each : changes) {
        partition p = gradients();
        each(p);
        std::string reason;
        EXPECT_FALSE(find(p, reason)) << &each - changes;
        EXPECT_FALSE(reason.empty());
    }
}

} // namespace
} // namespace maskwise::fusion
