// NaN in every key and value that no row keeps. The result must not depend on them, for rules and a
// causal mask, in any type and for any number of keys.

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

// Calls visit(sequence, first row, last row) for groups of rows that are computed together.
using visit_rows = std::function<void(std::int64_t, std::int64_t, std::int64_t)>;

void retype(test::attention_tensor& tensor, data_type type) {
    test::generator random(21);
    const std::vector<double> numbers = tensor.values;
    lay_out(random, tensor, type, tensor.at.extents, test::layout::dense);
    tensor.fill(numbers);
}

attention_case case_of(const rule_shape& shape, data_type type) {
    attention_case what =
        test::plain_case({shape.sequences, shape.rows, 6}, //
                         {shape.sequences, shape.keys, 6}, {shape.sequences, shape.keys, 5}, 7);
    for (auto* tensor : {&what.query, &what.key, &what.value}) retype(*tensor, type);
    what.describe();
    return what;
}

// Whether any of the rows keeps the key.
bool is_kept(const attention_case& what, std::int64_t sequence, std::int64_t first,
             std::int64_t last, std::int64_t key) {
    for (std::int64_t row = first; row < last; ++row)
        if (!what.rules || keeps(*what.rules, what.shape(), sequence, row, key)) return true;
    return false;
}

// The row's document, even for a row outside all documents.
std::int64_t document_at(const attention_case& what, std::int64_t sequence, std::int64_t row) {
    if (!what.rules || what.rules->documents.empty()) return 0;
    const auto& lists = what.rules->documents;
    const auto& documents = lists[lists.size() == 1 ? 0 : static_cast<std::size_t>(sequence)];
    std::int64_t number = 1;
    for (const document& one : documents) {
        if (one.first_row <= row && row < one.first_row + one.rows) return number;
        ++number;
    }
    return -1;
}

// Visits the rows of each panel, split by document.
void for_each_block(const attention_case& what, std::int64_t panel, const visit_rows& visit) {
    for (std::int64_t s = 0; s < what.shape().sequences; ++s)
        for (std::int64_t first = 0, last = 0; first < what.shape().rows; first = last) {
            const std::int64_t own = document_at(what, s, first);
            const std::int64_t end = std::min(what.shape().rows, first / panel * panel + panel);
            while (last < end && document_at(what, s, last) == own) ++last;
            visit(s, first, last);
        }
}

// Sets rows of the tensor to NaN if none of these query rows keeps them, including rows of other
// sequences unless all sequences share the tensor.
void spoil(const attention_case& what, test::attention_tensor& tensor, std::int64_t sequence,
           std::int64_t first, std::int64_t last) {
    std::vector<double> values = tensor.values;
    const std::int64_t columns = tensor.at.extents.back(), keys = what.shape().keys;
    const bool is_shared = tensor.at.extents.size() == 2;
    const std::int64_t each = std::ssize(values) / (is_shared ? 1 : what.shape().sequences);
    std::vector<bool> kept;
    for (std::int64_t key = 0; key < keys; ++key)
        kept.push_back(is_kept(what, sequence, first, last, key));
    for (std::int64_t i = 0; i < std::ssize(values); ++i)
        if ((!is_shared && i / each != sequence) ||
            !kept[static_cast<std::size_t>(i / columns % keys)])
            values[static_cast<std::size_t>(i)] = nan;
    tensor.fill(values);
}

std::vector<double> run(const attention_case& what, const tile_plan& plan, int threads) {
    const parallel_loop loop{threads, [](std::int64_t count, const auto& body) {
                                 for (std::int64_t i = 0; i < count; ++i) body(i);
                             }};
    run_attention(plan, what.operands(), &loop);
    return what.dst.read();
}

// Compares these rows of a sequence in all heads.
void expect_same(const attention_case& what, const std::vector<double>& found,
                 const std::vector<double>& wanted, std::int64_t sequence, std::int64_t first,
                 std::int64_t last) {
    const std::int64_t columns = what.dst.at.extents.back(), rows = what.shape().rows;
    const std::int64_t each = std::ssize(wanted) / what.shape().sequences;
    for (std::int64_t i = sequence * each; i < (sequence + 1) * each; ++i) {
        const std::int64_t row = i / columns % rows;
        if (row < first || row >= last) continue;
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(found[at], wanted[at]) << "element " << i << ' ' << to_string(what);
    }
}

// Keys masked for all rows of a block, or for one row, do not matter to these rows.
void expect_untouched(attention_case& what, const kernel_table* target, int threads = 1) {
    if (what.rules) check_rules(*what.rules, what.shape().sequences);
    const auto plan = make_tile_plan(what.desc, *target);
    const std::vector<double> clean = run(what, *plan, threads);
    const std::vector<double> keys = what.key.values, values = what.value.values;
    const std::int64_t rows = what.shape().rows, row = rows / 2;
    for_each_block(what, plan->folded_heads == 1 ? plan->panel : rows,
                   [&](auto sequence, auto first, auto last) {
                       if (testing::Test::HasFatalFailure()) return;
                       spoil(what, what.key, sequence, first, last);
                       spoil(what, what.value, sequence, first, last);
                       expect_same(what, run(what, *plan, threads), clean, sequence, first, last);
                       what.key.fill(keys);
                       what.value.fill(values);
                   });
    if (testing::Test::HasFatalFailure()) return;
    spoil(what, what.key, 0, row, row + 1);
    expect_same(what, run(what, *plan, threads), clean, 0, row, row + 1);
    what.key.fill(keys);
}

std::vector<document> documents_of(std::int64_t rows, std::int64_t keys, std::int64_t length) {
    std::vector<document> made;
    for (std::int64_t at = 0; at < rows; at += length)
        made.push_back({at, std::min(length, rows - at), std::min(at, keys),
                        std::max<std::int64_t>(0, std::min(length, keys - at))});
    return made;
}

// Each rule alone, with odd and even ends.
std::vector<mask_rules> rules_of(const rule_shape& shape, std::int64_t end) {
    std::vector<mask_rules> all{
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
    all.emplace_back();
    return all;
}

constexpr data_type types[] = {data_type::f32, data_type::bf16, data_type::f16};

class masked_values : public testing::TestWithParam<const kernel_table*> {
protected:
    static void check(attention_case& what, int threads = 1) {
        for (const auto order : {attention_order::tiles, attention_order::operators}) {
            what.desc.order = order;
            what.desc.weights_type =
                order == attention_order::tiles ? data_type::f32 : what.query.type;
            ASSERT_NO_FATAL_FAILURE(expect_untouched(what, GetParam(), threads));
        }
    }
};

TEST_P(masked_values, of_every_rule_do_not_matter) {
    for (const std::int64_t rows : {1, 2, 5, 12, 13, 33, 70})
        for (const std::int64_t end : {1, 8, 67})
            for (const data_type type : types) {
                const rule_shape shape{2, rows, 70};
                attention_case what = case_of(shape, type);
                for (const mask_rules& rules : rules_of(shape, end)) {
                    what.rules = rules;
                    ASSERT_NO_FATAL_FAILURE(check(what));
                }
            }
}

TEST_P(masked_values, of_random_rules_do_not_matter) {
    for (std::uint64_t i = 0; i < 60; ++i) {
        test::generator random(test::base_seed() + i);
        const rule_shape shape{2, test::draw(random, 1, 70), test::draw(random, 1, 200)};
        attention_case what = case_of(shape, types[i % 3]);
        what.rules = test::draw_rules(random, shape);
        ASSERT_NO_FATAL_FAILURE(check(what));
    }
}

// With enough keys, threads split the keys of a row tile and merge its states.
TEST_P(masked_values, do_not_matter_to_threads_that_share_keys) {
    for (const std::int64_t rows : {3, 40})
        for (const data_type type : types) {
            const rule_shape shape{1, rows, 1500};
            attention_case what = case_of(shape, type);
            for (const mask_rules& rules :
                 {mask_rules{.starts = {65}, .lengths = {1231}},
                  mask_rules{.documents = {{{0, 2, 1, 701}, {2, rows - 2, 702, 797}}}}}) {
                what.rules = rules;
                ASSERT_NO_FATAL_FAILURE(expect_untouched(what, GetParam(), 16));
            }
        }
}

// Heads or sequences of a few queries that share keys become rows of one panel.
TEST_P(masked_values, do_not_matter_to_folded_heads) {
    for (const std::int64_t rows : {1, 3, 8})
        for (const data_type type : types)
            for (const bool has_heads : {true, false}) {
                attention_case what =
                    has_heads ? test::plain_case({2, 8, rows, 6}, {2, 2, 90, 6}, {2, 2, 90, 5}, 7)
                              : test::plain_case({5, rows, 6}, {90, 6}, {90, 5}, 7);
                for (auto* tensor : {&what.query, &what.key, &what.value}) retype(*tensor, type);
                what.describe();
                what.desc.grouped_queries = has_heads;
                ASSERT_GT(make_tile_plan(what.desc, *GetParam())->folded_heads, 1);
                for (mask_rules rules : rules_of(what.shape(), 7)) {
                    if (rules.lengths.size() == 1) rules.lengths = {1, 90, 13, 64, 65};
                    rules.lengths.resize(rules.lengths.empty() ? 0 : has_heads ? 2 : 5, 9);
                    if (!has_heads) rules.documents.resize(rules.documents.empty() ? 0 : 1);
                    what.rules = rules;
                    ASSERT_NO_FATAL_FAILURE(check(what));
                }
            }
}

// A cond masks a key of any value. Rules mask a bias of any value.
TEST_P(masked_values, of_keys_below_a_cond_and_of_biases_below_rules_do_not_matter) {
    for (const std::int64_t rows : {1, 5, 33})
        for (const data_type type : types) {
            const rule_shape shape{1, rows, 70};
            attention_case what = case_of(shape, type);
            const auto plan_of = [&] { return make_tile_plan(what.desc, *GetParam()); };
            std::vector<double> cond(static_cast<std::size_t>(rows * 70), 0), bias(cond);
            what.rules = mask_rules{.starts = {3}, .lengths = {61}};
            for (std::size_t i = 0; i < cond.size(); ++i) {
                cond[i] = i % 70 % 3 == 0 ? 0 : 1;
                bias[i] = i % 70 < 3 || i % 70 >= 61 ? nan : -1;
            }
            test::set_cond(what, {1, rows, 70}, cond);
            const std::vector<double> clean = run(what, *plan_of(), 1), keys = what.key.values;
            std::vector<double> spoilt = keys;
            for (std::size_t i = 0; i < spoilt.size(); ++i)
                if (i / 6 % 3 == 0) spoilt[i] = nan;
            what.key.fill(spoilt);
            expect_same(what, run(what, *plan_of(), 1), clean, 0, 0, rows);
            what.key.fill(keys);
            test::set_bias(what, type, {1, rows, 70}, bias); // one value: no weight changes
            const test::output_memory before = test::copy_outputs(what);
            run(what, *plan_of(), 1);
            for (double& number : bias) number = -1;
            what.bias.fill(bias);
            ASSERT_EQ(test::compare(what, test::expected(what), before), "");
        }
}

// Tiles that a cond or a bias masks completely are not computed.
TEST_P(masked_values, of_whole_tiles_below_an_array_do_not_matter) {
    for (const std::int64_t rows : {1, 13, 70})
        for (const data_type type : types)
            for (const bool has_cond : {true, false}) {
                attention_case what = case_of({1, rows, 200}, type);
                std::vector<double> cond(static_cast<std::size_t>(rows * 200), 0), bias(cond);
                for (std::size_t i = 0; i < cond.size(); ++i) {
                    cond[i] = i % 200 / 64 == 1 ? 0 : 1;
                    if (cond[i] == 0) bias[i] = -std::numeric_limits<double>::infinity();
                }
                if (has_cond)
                    test::set_cond(what, {1, rows, 200}, cond);
                else
                    test::set_bias(what, type, {1, rows, 200}, bias);
                const auto plan = make_tile_plan(what.desc, *GetParam());
                const std::vector<double> clean = run(what, *plan, 1);
                for (auto* tensor : {&what.key, &what.value}) {
                    std::vector<double> values = tensor->values;
                    const auto columns = static_cast<std::size_t>(tensor->at.extents.back());
                    for (std::size_t i = 0; i < values.size(); ++i)
                        if (i / columns / 64 == 1) values[i] = nan;
                    tensor->fill(values);
                }
                expect_same(what, run(what, *plan, 1), clean, 0, 0, rows);
            }
}

INSTANTIATE_TEST_SUITE_P(every_target, masked_values, testing::ValuesIn(attention_targets()),
                         [](const auto& chosen) { return name_of(chosen.param); });

} // namespace
} // namespace maskwise
