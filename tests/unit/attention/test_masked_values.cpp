// A block is a group of rows that are computed together. NaN in keys and values that are masked for
// the whole block must not change the block's results.

#include "attention/row_spans.hpp"
#include "attention/run_attention.hpp"
#include "support/attention_case.hpp"
#include "unit/attention/attention_targets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

namespace maskwise {
namespace {

using test::attention_case;
using test::rule_shape;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// visit(sequence, first row, last row) gets a block.
using visit_rows = std::function<void(std::int64_t, std::int64_t, std::int64_t)>;

void retype(test::attention_tensor& tensor, data_type type) {
    test::generator random(21);
    const std::vector<double> numbers = tensor.values;
    lay_out(random, tensor, type, tensor.elements.extents, test::layout::dense);
    tensor.fill(numbers);
}

attention_case case_of(const rule_shape& shape, data_type type) {
    attention_case problem =
        test::plain_case({shape.sequences, shape.rows, 6}, //
                         {shape.sequences, shape.keys, 6}, {shape.sequences, shape.keys, 5}, 7);
    for (auto* tensor : {&problem.query, &problem.key, &problem.value}) retype(*tensor, type);
    problem.describe();
    return problem;
}

// Whether the key is unmasked for any row in [first, last).
bool is_unmasked(const attention_case& problem, std::int64_t sequence, std::int64_t first,
                 std::int64_t last, std::int64_t key) {
    for (std::int64_t row = first; row < last; ++row)
        if (!problem.rules || keeps(*problem.rules, problem.shape(), sequence, row, key))
            return true;
    return false;
}

// Returns the number of the row's document, from 1; -1 if the row is in none; 0 if there are no
// documents.
std::int64_t document_at(const attention_case& problem, std::int64_t sequence, std::int64_t row) {
    if (!problem.rules || problem.rules->documents.empty()) return 0;
    const auto& lists = problem.rules->documents;
    const auto& documents = lists[lists.size() == 1 ? 0 : static_cast<std::size_t>(sequence)];
    std::int64_t number = 1;
    for (const document& one : documents) {
        if (one.first_row <= row && row < one.first_row + one.rows) return number;
        ++number;
    }
    return -1;
}

// Visits the rows of each panel, split by document.
void for_each_block(const attention_case& problem, std::int64_t panel, const visit_rows& visit) {
    for (std::int64_t s = 0; s < problem.shape().sequences; ++s)
        for (std::int64_t first = 0, last = 0; first < problem.shape().rows; first = last) {
            const std::int64_t current = document_at(problem, s, first);
            const std::int64_t end = std::min(problem.shape().rows, first / panel * panel + panel);
            while (last < end && document_at(problem, s, last) == current) ++last;
            visit(s, first, last);
        }
}

// Sets to NaN the keys or values in `tensor` that are masked for query rows [first, last). Also
// sets other sequences' elements, unless all sequences share `tensor`.
void spoil(const attention_case& problem, test::attention_tensor& tensor, std::int64_t sequence,
           std::int64_t first, std::int64_t last) {
    std::vector<double> values = tensor.values;
    const std::int64_t columns = tensor.elements.extents.back(), keys = problem.shape().keys;
    const bool is_shared = tensor.elements.extents.size() == 2;
    const std::int64_t each = std::ssize(values) / (is_shared ? 1 : problem.shape().sequences);
    std::vector<bool> unmasked;
    for (std::int64_t key = 0; key < keys; ++key)
        unmasked.push_back(is_unmasked(problem, sequence, first, last, key));
    for (std::int64_t i = 0; i < std::ssize(values); ++i)
        if ((!is_shared && i / each != sequence) ||
            !unmasked[static_cast<std::size_t>(i / columns % keys)])
            values[static_cast<std::size_t>(i)] = nan;
    tensor.fill(values);
}

std::vector<double> run(const attention_case& problem, const tile_plan& plan, int threads) {
    const parallel_loop loop{threads, [](std::int64_t count, const auto& body) {
                                 for (std::int64_t i = 0; i < count; ++i) body(i);
                             }};
    run_attention(plan, problem.operands(), &loop);
    return problem.dst.read();
}

// Compares rows [first, last) of a sequence, in all heads.
void expect_same(const attention_case& problem, const std::vector<double>& actual,
                 const std::vector<double>& wanted, std::int64_t sequence, std::int64_t first,
                 std::int64_t last) {
    const std::int64_t columns = problem.dst.elements.extents.back(), rows = problem.shape().rows;
    const std::int64_t each = std::ssize(wanted) / problem.shape().sequences;
    for (std::int64_t i = sequence * each; i < (sequence + 1) * each; ++i) {
        const std::int64_t row = i / columns % rows;
        if (row < first || row >= last) continue;
        const auto index = static_cast<std::size_t>(i);
        ASSERT_EQ(actual[index], wanted[index]) << "element " << i << ' ' << to_string(problem);
    }
}

// NaN in keys and values masked for a whole block must not change the block. NaN in keys masked for
// one row must not change that row.
void expect_untouched(attention_case& problem, const kernel_table* target, int threads = 1) {
    if (problem.rules) check_rules(*problem.rules, problem.shape().sequences);
    const auto plan = make_tile_plan(problem.desc, *target);
    const std::vector<double> clean = run(problem, *plan, threads);
    const std::vector<double> keys = problem.key.values, values = problem.value.values;
    const std::int64_t rows = problem.shape().rows, row = rows / 2;
    for_each_block(problem, plan->folded_heads == 1 ? plan->panel : rows,
                   [&](auto sequence, auto first, auto last) {
                       if (testing::Test::HasFatalFailure()) return;
                       spoil(problem, problem.key, sequence, first, last);
                       spoil(problem, problem.value, sequence, first, last);
                       expect_same(problem, run(problem, *plan, threads), clean, sequence, first,
                                   last);
                       problem.key.fill(keys);
                       problem.value.fill(values);
                   });
    if (testing::Test::HasFatalFailure()) return;
    spoil(problem, problem.key, 0, row, row + 1);
    expect_same(problem, run(problem, *plan, threads), clean, 0, row, row + 1);
    problem.key.fill(keys);
}

std::vector<document> documents_of(std::int64_t rows, std::int64_t keys, std::int64_t length) {
    std::vector<document> documents;
    for (std::int64_t first = 0; first < rows; first += length)
        documents.push_back({first, std::min(length, rows - first), std::min(first, keys),
                             std::max<std::int64_t>(0, std::min(length, keys - first))});
    return documents;
}

// Returns rules of every kind, with bounds that depend on `end`.
std::vector<mask_rules> rules_of(const rule_shape& shape, std::int64_t end) {
    std::vector<mask_rules> rules{
        {.lengths = {end}},
        {.starts = {end}},
        {.causal = true},
        {.from_end = true, .causal = true, .lengths = {shape.keys, end}},
        {.offsets = {end}, .causal = true},
        {.window = key_window{end % 7, end % 5}},
        {.causal = true, .window = key_window{.left = 1 + end % 3, .first_keys = end % 9}},
        {.causal = true, .chunks = key_chunks{.size = 1 + end, .earlier = end % 2}},
        {.causal = true, .prefixes = {end}},
        {.documents = {documents_of(shape.rows, shape.keys, 1 + end)}},
        {.in_documents = true,
         .causal = true,
         .documents = {documents_of(shape.rows, shape.keys, 1 + end % 6)}},
        {.starts = {3},
         .lengths = {end},
         .documents = {documents_of(shape.rows, shape.keys, 11), {{1, 2, end, 3}}}},
    };
    rules.emplace_back();
    return rules;
}

constexpr data_type types[] = {data_type::f32, data_type::bf16, data_type::f16};

class masked_values : public testing::TestWithParam<const kernel_table*> {
protected:
    static void check(attention_case& problem, int threads = 1) {
        for (const auto order : {attention_order::tiles, attention_order::operators}) {
            problem.desc.order = order;
            problem.desc.weights_type =
                order == attention_order::tiles ? data_type::f32 : problem.query.type;
            ASSERT_NO_FATAL_FAILURE(expect_untouched(problem, GetParam(), threads));
        }
    }
};

TEST_P(masked_values, of_every_rule_do_not_matter) {
    for (const std::int64_t rows : {1, 2, 5, 12, 13, 33, 70})
        for (const std::int64_t end : {1, 8, 67})
            for (const data_type type : types) {
                const rule_shape shape{2, rows, 70};
                attention_case problem = case_of(shape, type);
                for (const mask_rules& rules : rules_of(shape, end)) {
                    problem.rules = rules;
                    ASSERT_NO_FATAL_FAILURE(check(problem));
                }
            }
}

TEST_P(masked_values, of_random_rules_do_not_matter) {
    for (std::uint64_t i = 0; i < 60; ++i) {
        test::generator random(test::base_seed() + i);
        const rule_shape shape{2, test::draw(random, 1, 70), test::draw(random, 1, 200)};
        attention_case problem = case_of(shape, types[i % 3]);
        problem.rules = test::draw_rules(random, shape);
        ASSERT_NO_FATAL_FAILURE(check(problem));
    }
}

// With enough keys, several threads compute one row tile and merge their partial results.
TEST_P(masked_values, do_not_matter_to_threads_that_share_keys) {
    for (const std::int64_t rows : {3, 40})
        for (const data_type type : types) {
            const rule_shape shape{1, rows, 1500};
            attention_case problem = case_of(shape, type);
            for (const mask_rules& rules :
                 {mask_rules{.starts = {65}, .lengths = {1231}},
                  mask_rules{.documents = {{{0, 2, 1, 701}, {2, rows - 2, 702, 797}}}}}) {
                problem.rules = rules;
                ASSERT_NO_FATAL_FAILURE(expect_untouched(problem, GetParam(), 16));
            }
        }
}

// Heads or sequences that share keys become rows of one panel if each has few rows.
TEST_P(masked_values, do_not_matter_to_folded_heads) {
    for (const std::int64_t rows : {1, 3, 8})
        for (const data_type type : types)
            for (const bool has_heads : {true, false}) {
                attention_case problem =
                    has_heads ? test::plain_case({2, 8, rows, 6}, {2, 2, 90, 6}, {2, 2, 90, 5}, 7)
                              : test::plain_case({5, rows, 6}, {90, 6}, {90, 5}, 7);
                for (auto* tensor : {&problem.query, &problem.key, &problem.value})
                    retype(*tensor, type);
                problem.describe();
                problem.desc.grouped_queries = has_heads;
                ASSERT_GT(make_tile_plan(problem.desc, *GetParam())->folded_heads, 1);
                for (mask_rules rules : rules_of(problem.shape(), 7)) {
                    if (rules.lengths.size() == 1) rules.lengths = {1, 90, 13, 64, 65};
                    rules.lengths.resize(rules.lengths.empty() ? 0 : has_heads ? 2 : 5, 9);
                    if (!has_heads) rules.documents.resize(rules.documents.empty() ? 0 : 1);
                    problem.rules = rules;
                    ASSERT_NO_FATAL_FAILURE(check(problem));
                }
            }
}

// A masked key or bias may be NaN. Here cond masks keys, and rules mask biases.
TEST_P(masked_values, of_keys_masked_by_cond_and_biases_masked_by_rules_do_not_matter) {
    for (const std::int64_t rows : {1, 5, 33})
        for (const data_type type : types) {
            const rule_shape shape{1, rows, 70};
            attention_case problem = case_of(shape, type);
            const auto plan_of = [&] { return make_tile_plan(problem.desc, *GetParam()); };
            std::vector<double> cond(static_cast<std::size_t>(rows * 70), 0), bias(cond);
            problem.rules = mask_rules{.starts = {3}, .lengths = {61}};
            for (std::size_t i = 0; i < cond.size(); ++i) {
                cond[i] = i % 70 % 3 == 0 ? 0 : 1;
                bias[i] = i % 70 < 3 || i % 70 >= 61 ? nan : -1;
            }
            test::set_cond(problem, {1, rows, 70}, cond);
            const std::vector<double> clean = run(problem, *plan_of(), 1),
                                      keys = problem.key.values;
            std::vector<double> spoilt = keys;
            for (std::size_t i = 0; i < spoilt.size(); ++i)
                if (i / 6 % 3 == 0) spoilt[i] = nan;
            problem.key.fill(spoilt);
            expect_same(problem, run(problem, *plan_of(), 1), clean, 0, 0, rows);
            problem.key.fill(keys);
            test::set_bias(problem, type, {1, rows, 70}, bias);
            const test::output_memory before = test::copy_outputs(problem);
            run(problem, *plan_of(), 1);
            for (double& number : bias) number = -1;
            problem.bias.fill(bias);
            ASSERT_EQ(test::compare(problem, test::expected(problem), before), "");
        }
}

// Attention skips tiles that cond or bias masks completely.
TEST_P(masked_values, of_tiles_masked_by_an_array_do_not_matter) {
    for (const std::int64_t rows : {1, 13, 70})
        for (const data_type type : types)
            for (const bool has_cond : {true, false}) {
                attention_case problem = case_of({1, rows, 200}, type);
                std::vector<double> cond(static_cast<std::size_t>(rows * 200), 0), bias(cond);
                for (std::size_t i = 0; i < cond.size(); ++i) {
                    cond[i] = i % 200 / 64 == 1 ? 0 : 1;
                    if (cond[i] == 0) bias[i] = -std::numeric_limits<double>::infinity();
                }
                if (has_cond)
                    test::set_cond(problem, {1, rows, 200}, cond);
                else
                    test::set_bias(problem, type, {1, rows, 200}, bias);
                const auto plan = make_tile_plan(problem.desc, *GetParam());
                const std::vector<double> clean = run(problem, *plan, 1);
                for (auto* tensor : {&problem.key, &problem.value}) {
                    std::vector<double> values = tensor->values;
                    const auto columns = static_cast<std::size_t>(tensor->elements.extents.back());
                    for (std::size_t i = 0; i < values.size(); ++i)
                        if (i / columns / 64 == 1) values[i] = nan;
                    tensor->fill(values);
                }
                expect_same(problem, run(problem, *plan, 1), clean, 0, 0, rows);
            }
}

INSTANTIATE_TEST_SUITE_P(every_target, masked_values, testing::ValuesIn(attention_targets()),
                         [](const auto& chosen) { return name_of(chosen.param); });

} // namespace
} // namespace maskwise
