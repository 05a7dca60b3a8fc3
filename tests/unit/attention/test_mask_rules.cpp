// Tests mask rules: the keys of a row, the summary of a tile, and attention. Attention must give
// the same results if the mask is an array.

#include "attention/row_spans.hpp"
#include "attention/run_attention.hpp"
#include "base/cpu.hpp"
#include "support/attention_case.hpp"
#include "support/rule_definition.hpp"
#include "support/texts.hpp"
#include "unit/attention/attention_targets.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace maskwise {
namespace {

using test::attention_case;
using test::rule_shape;

bool is_in(const key_span& span, std::int64_t key) {
    return span.first <= key && key < span.last;
}

std::vector<std::int64_t> unmasked_keys(const mask_rules& rules, const rule_shape& shape,
                                        std::int64_t row) {
    const row_spans spans = sequence_rules(rules, 0, shape.rows, shape.keys).spans_of(row);
    std::vector<std::int64_t> keys;
    for (std::int64_t key = 0; key < shape.keys; ++key)
        if (is_in(spans.main, key) || is_in(spans.second, key)) keys.push_back(key);
    return keys;
}

using places = std::vector<std::int64_t>;

TEST(mask_rules, mean_the_same_as_in_other_libraries) {
    constexpr rule_shape shape{1, 10, 10};
    mask_rules rules;
    rules.window = {.left = 2, .right = 1}; // flash_attn's window_size=(2, 1)
    EXPECT_EQ(unmasked_keys(rules, shape, 5), (places{3, 4, 5, 6}));
    EXPECT_EQ(unmasked_keys(rules, shape, 0), (places{0, 1}));
    for (const std::int64_t size : {1, 2, 3}) { // transformers' sliding_window: key > row - size
        rules.causal = true;
        rules.window = {.left = size - 1};
        EXPECT_EQ(unmasked_keys(rules, shape, 5).front(), 5 - size + 1);
        EXPECT_EQ(unmasked_keys(rules, shape, 5).back(), 5);
    }
    rules.window = {.left = 1, .right = -1, .first_keys = 2};
    EXPECT_EQ(unmasked_keys(rules, shape, 5), (places{0, 1, 4, 5}));
    rules = {.causal = true, .prefixes = {4}};
    EXPECT_EQ(unmasked_keys(rules, shape, 1), (places{0, 1, 2, 3}));
    rules = {.chunks = key_chunks{.size = 4, .earlier = 1}};
    EXPECT_EQ(unmasked_keys(rules, shape, 9), (places{4, 5, 6, 7, 8, 9}));
    rules = {.from_end = true, .causal = true, .lengths = {7}}; // 2 rows that continue a cache
    EXPECT_EQ(unmasked_keys(rules, {1, 2, 10}, 0), (places{0, 1, 2, 3, 4, 5}));
    rules = {.from_end = true, .in_documents = true, .causal = true}; // flash_attn_varlen_func
    rules.documents = {{{0, 2, 0, 3}, {2, 2, 3, 4}}};
    EXPECT_EQ(unmasked_keys(rules, {1, 4, 7}, 0), (places{0, 1}));
    EXPECT_EQ(unmasked_keys(rules, {1, 4, 7}, 2), (places{3, 4, 5}));
    EXPECT_EQ(unmasked_keys(rules, {1, 4, 7}, 3), (places{3, 4, 5, 6}));
}

// Compares the spans of a sequence with the definition, in tiles of 7 rows.
void expect_spans(const mask_rules& rules, const rule_shape& shape, std::int64_t sequence) {
    const auto text = [&] { return test::to_string(rules); };
    for (std::int64_t first = 0; first < shape.rows; first += 7) {
        spans_summary summary;
        const sequence_rules rules_of_sequence(rules, sequence, shape.rows, shape.keys);
        std::vector<bool> by_some(static_cast<std::size_t>(shape.keys)),
            by_all(by_some.size(), true);
        for (std::int64_t row = first; row < std::min(shape.rows, first + 7); ++row) {
            const row_spans spans = rules_of_sequence.spans_of(row);
            summary.add(spans, row == first);
            for (std::int64_t key = 0; key < shape.keys; ++key) {
                const bool is_unmasked = keeps(rules, shape, sequence, row, key);
                ASSERT_EQ(is_in(spans.main, key) || is_in(spans.second, key), is_unmasked)
                    << row << ' ' << key << ' ' << text();
                by_some[static_cast<std::size_t>(key)] =
                    by_some[static_cast<std::size_t>(key)] || is_unmasked;
                by_all[static_cast<std::size_t>(key)] =
                    by_all[static_cast<std::size_t>(key)] && is_unmasked;
            }
        }
        for (std::int64_t key = 0; key < shape.keys; ++key) {
            const auto index = static_cast<std::size_t>(key);
            const tile_mask state = summary.state(key, key + 1);
            ASSERT_FALSE(by_some[index] && state == tile_mask::masked)
                << first << ' ' << key << text();
            ASSERT_FALSE(!by_all[index] && state == tile_mask::kept)
                << first << ' ' << key << text();
            ASSERT_FALSE(by_some[index] && !is_in(summary.hull(), key))
                << first << ' ' << key << text();
        }
    }
}

TEST(mask_rules, match_their_definition) {
    const std::uint64_t seed = test::base_seed();
    for (std::uint64_t i = 0; i < 3000; ++i) {
        test::generator random(seed + i);
        const rule_shape shape{test::draw(random, 1, 3), test::draw(random, 1, 30),
                               test::draw(random, 1, 40)};
        const mask_rules rules = test::draw_rules(random, shape);
        ASSERT_NO_THROW(check_rules(rules, shape.sequences)) << test::to_string(rules);
        for (std::int64_t sequence = 0; sequence < shape.sequences; ++sequence)
            expect_spans(rules, shape, sequence);
    }
}

TEST(mask_rules, do_not_overflow) {
    constexpr std::int64_t most = std::int64_t{1} << 48;
    for (const std::int64_t offset : {-most, std::int64_t{0}, most}) {
        mask_rules rules{.offsets = {offset}, .causal = true};
        rules.window = {.left = most, .right = most};
        rules.chunks = key_chunks{.size = most, .earlier = most};
        check_rules(rules, 1);
        const row_spans spans =
            sequence_rules(rules, 0, most, std::int64_t{1} << 60).spans_of(most);
        EXPECT_LE(spans.main.last, std::int64_t{1} << 60);
    }
}

TEST(mask_rules, refuse_contradictions) {
    const auto reason = [](const mask_rules& rules) {
        return test::refusal<argument_error>([&] { check_rules(rules, 3); });
    };
    EXPECT_EQ(reason({.offsets = {1, 2}}), "mask rules: offsets has 2 elements, expected one or 3");
    EXPECT_EQ(reason({.lengths = {-1}}), "mask rules: lengths is -1, expected 0 to 2^48");
    EXPECT_EQ(reason({.window = key_window{-2, 0}}),
              "mask rules: window.left is -2, expected -1 to 2^48");
    EXPECT_EQ(reason({.chunks = key_chunks{0, 0}}),
              "mask rules: chunks.size is 0, expected 1 to 2^48");
    EXPECT_EQ(reason({.window = key_window{1, 1, 4}, .prefixes = {1}}),
              "mask rules: window.first_keys and prefixes exclude each other");
    EXPECT_EQ(reason({.documents = {{{4, 2, 0, 2}, {5, 1, 2, 2}}}}),
              "mask rules: a document begins at row 5, expected no row before 6");
    EXPECT_EQ(reason({.documents = {{{0, -1, 0, 2}}}}),
              "mask rules: a document's extent is -1, expected 0 to 2^48");
}

class rules_test : public testing::TestWithParam<const kernel_table*> {};

struct outcome {
    std::vector<std::byte> dst;
    std::int64_t computed_tiles;
};

outcome run(const attention_case& problem, const kernel_table* target) {
    const auto plan = make_tile_plan(problem.desc, *target);
    const test::output_memory before = test::copy_outputs(problem);
    run_attention(*plan, problem.operands(), nullptr);
    EXPECT_EQ(test::compare(problem, test::expected(problem), before), "") << to_string(problem);
    return {test::copy_outputs(problem).dst, plan->computed_tiles};
}

// If rules and the array compute the same tiles, dst is bit-identical. If documents are far apart,
// rules may compute more tiles.
TEST_P(rules_test, match_the_same_mask_as_an_array) {
    int same = 0;
    for (std::uint64_t i = 0; i < 60; ++i) {
        test::generator random(test::base_seed() + i);
        const rule_shape shape{2, test::draw(random, 33, 200), test::draw(random, 1, 300)};
        attention_case problem =
            test::plain_case({2, shape.rows, 8}, {2, shape.keys, 8}, {2, shape.keys, 5}, 3);
        problem.rules = test::draw_rules(random, shape);
        if (i % 3 == 0) problem.desc.fill = -3;
        const outcome by_rules = run(problem, GetParam());
        std::vector<double> unmasked;
        for (std::int64_t s = 0; s < 2; ++s)
            for (std::int64_t r = 0; r < shape.rows; ++r)
                for (std::int64_t k = 0; k < shape.keys; ++k)
                    unmasked.push_back(keeps(*problem.rules, shape, s, r, k) ? 1 : 0);
        test::set_cond(problem, {2, shape.rows, shape.keys}, unmasked);
        const std::string text = to_string(problem);
        problem.rules.reset();
        const outcome by_array = run(problem, GetParam());
        ASSERT_GE(by_rules.computed_tiles, by_array.computed_tiles) << text;
        same += by_rules.computed_tiles == by_array.computed_tiles ? 1 : 0;
        if (by_rules.computed_tiles == by_array.computed_tiles) {
            ASSERT_EQ(by_array.dst, by_rules.dst) << text;
        }
    }
    EXPECT_GE(same, 40);
}

// Query heads that share a KV head are folded into one head if they have few rows. Rules use each
// row's position in its sequence.
TEST_P(rules_test, hold_for_folded_heads) {
    for (const std::int64_t rows : {1, 3, 8}) {
        attention_case problem =
            test::plain_case({2, 8, rows, 8}, {2, 2, 700, 8}, {2, 2, 700, 5}, 3);
        problem.desc.grouped_queries = true;
        problem.rules = mask_rules{.from_end = true, .causal = true, .lengths = {700, 650}};
        problem.rules->window = key_window{.left = 100};
        const auto plan = make_tile_plan(problem.desc, *GetParam());
        EXPECT_EQ(plan->rows, 4 * rows);
        const test::output_memory before = test::copy_outputs(problem);
        run_attention(*plan, problem.operands(), nullptr);
        EXPECT_EQ(test::compare(problem, test::expected(problem), before), "") << to_string(*plan);
        EXPECT_LE(plan->computed_tiles, 2 * 2 * 3);
    }
}

TEST_P(rules_test, compute_only_unmasked_tiles) {
    attention_case problem = test::plain_case({1, 640, 8}, {1, 640, 8}, {1, 640, 5}, 3);
    const auto tiles = [&](const mask_rules& rules) {
        problem.rules = rules;
        const auto plan = make_tile_plan(problem.desc, *GetParam());
        const tile_counts counts = count_tiles(*plan, problem.operands());
        run_attention(*plan, problem.operands(), nullptr);
        EXPECT_EQ(counts.all, 100);
        EXPECT_EQ(counts.full + counts.mixed, static_cast<std::int64_t>(plan->computed_tiles));
        EXPECT_EQ(counts.skipped, counts.all - counts.full - counts.mixed);
        return counts.full + counts.mixed;
    };
    EXPECT_EQ(tiles({}), 100);
    EXPECT_EQ(tiles({.causal = true}), 55);
    EXPECT_EQ(tiles({.causal = true, .window = key_window{.left = 64}}), 19);
    EXPECT_EQ(tiles({.chunks = key_chunks{.size = 64}}), 10);
    EXPECT_EQ(tiles({.lengths = {65}}), 20);
    EXPECT_EQ(tiles({.documents = {{{0, 320, 0, 320}, {320, 320, 320, 320}}}}), 50);
    EXPECT_EQ(tiles({.causal = true, .window = key_window{.left = 0, .first_keys = 4}}), 19);
    // The documents of adjacent rows are far apart.
    std::vector<document> apart;
    for (std::int64_t row = 0; row < 64; ++row)
        apart.push_back({row, 1, row % 2 == 0 ? 0 : 600, 40});
    EXPECT_EQ(tiles({.documents = {apart}}), 2);
}

INSTANTIATE_TEST_SUITE_P(every_target, rules_test, testing::ValuesIn(attention_targets()),
                         [](const auto& tested) { return name_of(tested.param); });

// Padded batches of packed documents end with many empty documents.
TEST(mask_rules, find_documents_among_empty_ones) {
    mask_rules rules{.documents = {{{0, 3, 0, 3}, {3, 0, 3, 0}, {3, 2, 3, 2}}}};
    rules.documents[0].resize(100'000, {5, 0, 5, 0});
    const rule_shape shape{1, 4096, 8};
    EXPECT_EQ(unmasked_keys(rules, shape, 2), (std::vector<std::int64_t>{0, 1, 2}));
    EXPECT_EQ(unmasked_keys(rules, shape, 3), (std::vector<std::int64_t>{3, 4}));
    const sequence_rules rules_of_sequence(rules, 0, shape.rows, shape.keys);
    for (int turn = 0; turn < 100; ++turn) // would take minutes if each row searched all documents
        for (std::int64_t row = 5; row < shape.rows; ++row)
            ASSERT_TRUE(rules_of_sequence.spans_of(row).main.is_empty());
}

TEST(count_tiles, reads_nothing_of_an_empty_attention) {
    attention_desc desc;
    desc.query = {data_type::f32, {1, 1, 0, 8}};
    desc.key = desc.value = {data_type::f32, {1, 1, 5, 8}};
    desc.cond = {data_type::boolean, {0, 5}};
    EXPECT_EQ(count_tiles(*make_tile_plan(desc, active_isa()), {}).all, 0);
    desc.cond = {};
    desc.bias = {data_type::f32, {0, 5}};
    EXPECT_EQ(count_tiles(*make_tile_plan(desc, active_isa()), {}).all, 0);
}

// Attentions with the same mask_maps read the mask once.
TEST(mask_maps, are_reused_by_later_executions) {
    attention_case problem = test::plain_case({1, 130, 8}, {1, 300, 8}, {1, 300, 5}, 3);
    std::vector<double> unmasked(130 * 300, 1);
    for (std::size_t i = 0; i < unmasked.size(); ++i)
        if (i % 300 >= 128) unmasked[i] = 0;
    test::set_cond(problem, {130, 300}, unmasked);
    const mask_maps maps;
    const auto run_with = [&](const mask_maps* shared_maps) {
        const auto plan = make_tile_plan(problem.desc, active_isa());
        attention_operands operands = problem.operands();
        operands.maps = shared_maps;
        run_attention(*plan, operands, nullptr);
        return static_cast<std::int64_t>(plan->computed_tiles);
    };
    EXPECT_EQ(run_with(&maps), 3 * 2);
    const std::vector<std::byte> first = test::copy_outputs(problem).dst;
    // A caller must not change the mask. This test changes the mask, to show that the next
    // execution does not read the mask.
    problem.cond.fill(std::vector<double>(unmasked.size(), 1));
    EXPECT_EQ(run_with(&maps), 3 * 2);
    EXPECT_EQ(test::copy_outputs(problem).dst, first);
    EXPECT_EQ(run_with(nullptr), 3 * 5);
    const mask_maps others;
    EXPECT_EQ(run_with(&others), 3 * 5);
}

} // namespace
} // namespace maskwise
