// With attention_order::fixed, a row's result is bit-identical wherever its sequence is in a call.
// Each variant places one sequence, or its last rows, into a padded or packed batch, perhaps with a
// paged cache. Rules, a boolean array or a bias masks the batch. The number of threads varies.

#include "attention/run_attention.hpp"
#include "support/attention_case.hpp"
#include "support/threads_loop.hpp"
#include "unit/attention/attention_targets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

namespace maskwise {
namespace {

using test::draw;
using test::loop_of;
using test::one_in;

constexpr std::int64_t depth = 10, columns = 7, heads = 4, key_heads = 2;
constexpr unsigned variants = 700;

// Activations in the layout {tokens, heads, width}, as a model's layers write them. Attention reads
// them as {heads, tokens, width}.
struct token_rows {
    std::int64_t row_bytes() const { return width * static_cast<std::int64_t>(width_bytes(type)); }
    std::int64_t token_bytes() const { return head_count * row_bytes(); }
    std::byte* token(std::int64_t index) { return bytes.data() + index * token_bytes(); }
    // Describes the rows as `count` sequences of equal length.
    tensor_desc as_batch(std::int64_t count) const {
        const std::int64_t per_sequence = tokens / count;
        const auto elem_bytes = static_cast<std::int64_t>(width_bytes(type));
        return {type,
                {count, head_count, per_sequence, width},
                {per_sequence * token_bytes(), row_bytes(), token_bytes(), elem_bytes}};
    }

    data_type type;
    std::int64_t tokens, head_count, width;
    std::vector<std::byte> bytes =
        std::vector<std::byte>(static_cast<std::size_t>(tokens * token_bytes()));
};

void fill(test::generator& random, token_rows& rows) {
    std::normal_distribution<double> values;
    const test::element type = test::element_of(rows.type);
    for (std::int64_t i = 0; i < std::ssize(rows.bytes); i += test::width_bytes(type))
        test::store(rows.bytes.data() + i, type, values(random));
}

struct sequence {
    sequence(test::generator& random, data_type type, std::int64_t tokens)
        : query{type, tokens, heads, depth}, key{type, tokens, key_heads, depth}, value{type,
                                                                                        tokens,
                                                                                        key_heads,
                                                                                        columns} {
        for (token_rows* rows : {&query, &key, &value}) fill(random, *rows);
    }

    token_rows query, key, value;
};

void place(token_rows& into, std::int64_t first, token_rows& from, std::int64_t skipped = 0) {
    const std::int64_t count = from.tokens - skipped;
    std::memcpy(into.token(first), from.token(skipped),
                static_cast<std::size_t>(count * from.token_bytes()));
}

// `window` -1: no window.
mask_rules causal_rules(std::int64_t window) {
    return {.causal = true, .window = key_window{.left = window}};
}

// A batch that contains the tested sequence. The sequence's last queries begin at row `first_row`.
// All other queries are random.
struct embedding {
    std::int64_t batch = 1, first_row = 0;
    sequence tokens;
    token_rows query;
    mask_rules rules;
    std::vector<std::byte> mask = {}; // an array instead of rules
    data_type mask_type = data_type::undef;
    std::vector<std::int32_t> pages = {}; // page numbers by sequence; empty: not paged
};

class fixed_order : public testing::TestWithParam<const kernel_table*> {
protected:
    token_rows run(const embedding& call, int threads) const {
        const std::int64_t rows = call.query.tokens;
        const std::int64_t keys = call.tokens.key.tokens / call.batch;
        token_rows dst{call.query.type, rows, heads, columns};
        attention_desc desc{.query = call.query.as_batch(call.batch),
                            .key = call.tokens.key.as_batch(call.batch),
                            .value = call.tokens.value.as_batch(call.batch)};
        desc.grouped_queries = true;
        desc.order = attention_order::fixed;
        desc.dst = dst.as_batch(call.batch);
        if (const std::int64_t pages = std::ssize(call.pages); pages != 0) {
            desc.key = call.tokens.key.as_batch(pages);
            desc.value = call.tokens.value.as_batch(pages);
            desc.page_table = {data_type::i32, {call.batch, pages / call.batch}};
        }
        const tensor_desc mask{call.mask_type, {call.batch, 1, rows / call.batch, keys}};
        if (call.mask_type == data_type::boolean) desc.cond = mask;
        if (call.mask_type == data_type::f32) desc.bias = mask;
        attention_operands operands{.query = call.query.bytes.data(),
                                    .key = call.tokens.key.bytes.data(),
                                    .value = call.tokens.value.bytes.data(),
                                    .dst = dst.bytes.data(),
                                    .page_table = call.pages.data()};
        if (call.mask_type == data_type::boolean) operands.cond = call.mask.data();
        if (call.mask_type == data_type::f32) operands.bias = call.mask.data();
        if (call.mask_type == data_type::undef) operands.rules = &call.rules;
        const parallel_loop loop = loop_of(threads);
        run_attention(*make_tile_plan(desc, *GetParam()), operands, &loop);
        return dst;
    }
};

// Places the sequence into a padded batch. All other tokens are random, even masked tokens.
embedding padded(test::generator& random, sequence& text, const mask_rules& rules,
                 std::int64_t rows) {
    const std::int64_t tokens = text.query.tokens, batch = draw(random, 1, 3);
    const bool is_left = one_in(random, 2);
    const std::int64_t padding = draw(random, 0, 70), keys = tokens + padding;
    const std::int64_t index = draw(random, 0, batch - 1);
    const std::int64_t first_key = index * keys + (is_left ? padding : 0);
    const std::int64_t last_rows = is_left ? rows : rows + padding; // right padding adds rows
    embedding call{batch, index * last_rows, sequence(random, text.query.type, batch * keys),
                   token_rows{text.query.type, batch * last_rows, heads, depth}, rules};
    fill(random, call.query);
    place(call.tokens.key, first_key, text.key);
    place(call.tokens.value, first_key, text.value);
    place(call.query, call.first_row, text.query, tokens - rows);
    call.rules.offsets = {keys - last_rows};
    (is_left ? call.rules.starts : call.rules.lengths) = {is_left ? padding : tokens};
    return call;
}

embedding packed(test::generator& random, sequence& text, const mask_rules& rules,
                 std::int64_t rows) {
    const std::int64_t tokens = text.query.tokens;
    const std::int64_t before = draw(random, 0, 90), after = draw(random, 0, 90);
    embedding call{1, before, sequence(random, text.query.type, before + tokens + after),
                   token_rows{text.query.type, before + rows + after, heads, depth}, rules};
    fill(random, call.query);
    place(call.tokens.key, before, text.key);
    place(call.tokens.value, before, text.value);
    place(call.query, before, text.query, tokens - rows);
    call.rules.from_end = call.rules.in_documents = true;
    call.rules.documents = {{{0, before, 0, before},
                             {before, rows, before, tokens},
                             {before + rows, after, before + tokens, after}}};
    return call;
}

// Replaces the rules by a cond or bias array.
void write_array(test::generator& random, embedding& call) {
    const std::int64_t rows = call.query.tokens / call.batch;
    const std::int64_t keys = call.tokens.key.tokens / call.batch;
    std::vector<std::byte> unmasked(static_cast<std::size_t>(rows * keys));
    write_mask(call.rules, 1, 0, rows, keys, unmasked.data());
    call.mask_type = one_in(random, 2) ? data_type::boolean : data_type::f32;
    const float masked = one_in(random, 2) ? -HUGE_VALF : -1e30F;
    for (std::int64_t i = 0; i < call.batch; ++i)
        for (const std::byte element : unmasked) {
            if (call.mask_type == data_type::boolean) {
                call.mask.push_back(element);
                continue;
            }
            const float bias = element == std::byte{0} ? masked : 0;
            const auto* const bytes = reinterpret_cast<const std::byte*>(&bias);
            call.mask.insert(call.mask.end(), bytes, bytes + sizeof bias);
        }
}

void move_pages(token_rows& rows, const std::vector<std::int32_t>& pages) {
    const token_rows before = rows;
    const auto page_bytes = rows.bytes.size() / pages.size();
    for (std::size_t i = 0; i < pages.size(); ++i)
        std::memcpy(rows.bytes.data() + static_cast<std::size_t>(pages[i]) * page_bytes,
                    before.bytes.data() + i * page_bytes, page_bytes);
}

// Turns keys and values into a paged cache. The page size divides the keys per sequence.
void put_in_pages(test::generator& random, embedding& call) {
    const std::int64_t keys = call.tokens.key.tokens / call.batch;
    std::int64_t page_keys = draw(random, 1, std::min<std::int64_t>(keys, 100));
    while (keys % page_keys != 0) --page_keys;
    call.pages.resize(static_cast<std::size_t>(call.batch * keys / page_keys));
    std::iota(call.pages.begin(), call.pages.end(), 0);
    std::shuffle(call.pages.begin(), call.pages.end(), random);
    for (token_rows* rows : {&call.tokens.key, &call.tokens.value}) move_pages(*rows, call.pages);
}

TEST_P(fixed_order, rows_have_the_same_bits_in_every_call) {
    test::generator random(31);
    std::int64_t compared = 0;
    for (unsigned variant = 0; variant < variants; ++variant) {
        const data_type type =
            std::array{data_type::f32, data_type::bf16, data_type::f16}[variant % 3U];
        const std::int64_t tokens = draw(random, 1, 150);
        sequence text(random, type, tokens);
        const mask_rules rules = causal_rules(one_in(random, 3) ? draw(random, 0, 40) : -1);
        const embedding alone{1, 0, text, text.query, rules};
        token_rows expected = run(alone, 1);
        const std::int64_t rows = one_in(random, 3) ? tokens : draw(random, 1, tokens);
        embedding call = one_in(random, 3) ? packed(random, text, rules, rows)
                                           : padded(random, text, rules, rows);
        if (one_in(random, 2)) write_array(random, call);
        if (one_in(random, 4)) put_in_pages(random, call);
        token_rows actual = run(call, static_cast<int>(draw(random, 1, 64)));
        ASSERT_EQ(std::memcmp(actual.token(call.first_row), expected.token(tokens - rows),
                              static_cast<std::size_t>(rows * expected.token_bytes())),
                  0)
            << "variant " << variant << ", " << to_string(type) << ", " << rows << " of " << tokens
            << " rows";
        compared += rows * heads;
    }
    EXPECT_GE(compared, 100'000);
}

// Order `tiles` is faster, but its bits depend on padding.
TEST_P(fixed_order, order_tiles_depends_on_padding) {
    test::generator random(32);
    sequence text(random, data_type::f32, 150);
    const auto bits_of = [&](attention_order order, std::int64_t padding) {
        sequence tokens(random, data_type::f32, 150 + padding);
        place(tokens.key, padding, text.key);
        place(tokens.value, padding, text.value);
        attention_desc desc{.query = text.query.as_batch(1),
                            .key = tokens.key.as_batch(1),
                            .value = tokens.value.as_batch(1)};
        desc.grouped_queries = true;
        desc.order = order;
        token_rows dst{data_type::f32, 150, heads, columns};
        desc.dst = dst.as_batch(1);
        const mask_rules rules{.offsets = {padding}, .causal = true, .starts = {padding}};
        run_attention(*make_tile_plan(desc, *GetParam()),
                      {.query = text.query.bytes.data(),
                       .key = tokens.key.bytes.data(),
                       .value = tokens.value.bytes.data(),
                       .dst = dst.bytes.data(),
                       .rules = &rules},
                      nullptr);
        return dst.bytes;
    };
    EXPECT_NE(bits_of(attention_order::tiles, 0), bits_of(attention_order::tiles, 33));
    EXPECT_EQ(bits_of(attention_order::fixed, 0), bits_of(attention_order::fixed, 33));
}

INSTANTIATE_TEST_SUITE_P(every_target, fixed_order, testing::ValuesIn(attention_targets()),
                         [](const auto& chosen) { return name_of(chosen.param); });

} // namespace
} // namespace maskwise
