// Tests attention with a paged KV cache. Paged results must be bit-identical to contiguous ones,
// unless the keys of a page are transposed. Unused pages are protected, so reading one ends the
// test.

#include "attention/attention_checks.hpp"
#include "attention/cache_pages.hpp"
#include "attention/gradients_plan.hpp"
#include "attention/run_attention.hpp"
#include "support/attention_case.hpp"
#include "unit/attention/attention_targets.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace maskwise {
namespace {

constexpr std::int64_t os_page_bytes = 4096;

struct paged_shape {
    data_type type = data_type::f32;
    std::int64_t page_keys = 16, rows = 1, heads = 4, key_heads = 2, depth = 16, columns = 24;
    std::int64_t pages = 12; // in the cache
    bool transposed = false; // adjacent elements of a page belong to adjacent keys, not to one key

    std::int64_t width() const { return static_cast<std::int64_t>(width_bytes(type)); }
};

std::vector<std::byte> random_elements(test::generator& random, data_type type,
                                       std::int64_t count) {
    const auto width = static_cast<std::int64_t>(width_bytes(type));
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * width));
    for (std::int64_t i = 0; i < count; ++i)
        test::store(bytes.data() + i * width, test::element_of(type),
                    test::draw_number(random, -1.5, 1.5));
    return bytes;
}

// A cache of shape {pages, heads, keys per page, columns}. In memory, a page is {keys, heads,
// columns}, or {heads, columns, keys} if transposed. Each page begins at a multiple of the
// operating system's page size, because run_paged protects unused pages.
struct cache {
    cache(test::generator& random, const paged_shape& shape, std::int64_t columns, bool transposed)
        : page_elems(shape.page_keys * shape.key_heads * columns), shape_(shape), columns_(columns),
          transposed_(transposed) {
        const std::int64_t bytes = page_elems * shape.width();
        page_bytes = (bytes + os_page_bytes - 1) / os_page_bytes * os_page_bytes;
        memory = test::guarded_buffer(static_cast<std::size_t>(shape.pages * page_bytes),
                                      test::guarded_buffer::edge::front);
        for (std::int64_t page = 0; page < shape.pages; ++page)
            std::ranges::copy(random_elements(random, shape.type, page_elems),
                              memory.data() + page * page_bytes);
    }

    tensor_desc desc() const {
        const std::int64_t width = shape_.width(), row = shape_.key_heads * columns_;
        if (transposed_)
            return {
                shape_.type,
                {shape_.pages, shape_.key_heads, shape_.page_keys, columns_},
                {page_bytes, columns_ * shape_.page_keys * width, width, shape_.page_keys * width}};
        return {shape_.type,
                {shape_.pages, shape_.key_heads, shape_.page_keys, columns_},
                {page_bytes, columns_ * width, row * width, width}};
    }
    const std::byte* element(std::int64_t page, std::int64_t head, std::int64_t key,
                             std::int64_t column) const {
        const dims& strides = desc().strides_bytes;
        return memory.data() + page * strides[0] + head * strides[1] + key * strides[2] +
               column * strides[3];
    }
    void protect(const std::vector<bool>& is_used, int access) const {
        for (std::size_t page = 0; page < is_used.size(); ++page)
            if (!is_used[page])
                mprotect(memory.data() + static_cast<std::int64_t>(page) * page_bytes,
                         static_cast<std::size_t>(page_bytes), access);
    }

    std::int64_t page_elems, page_bytes = 0;
    test::guarded_buffer memory;

private:
    paged_shape shape_;
    std::int64_t columns_;
    bool transposed_;
};

struct paged_case {
    paged_case(std::uint64_t seed, const paged_shape& of, std::vector<std::int64_t> keys)
        : shape(of), random(seed), lengths(std::move(keys)),
          key(random, of, of.depth, of.transposed), value(random, of, of.columns, false) {
        const std::int64_t most = *std::ranges::max_element(lengths);
        sequences = std::ssize(lengths);
        sequence_pages = std::max<std::int64_t>(1, (most + of.page_keys - 1) / of.page_keys);
        is_used.resize(static_cast<std::size_t>(of.pages));
        for (const std::int64_t length : lengths) add_row_of_table(length);
        query = random_elements(random, of.type, sequences * of.heads * of.rows * of.depth);
    }

    // A page may occur several times in the table. Entries past the length are invalid.
    void add_row_of_table(std::int64_t length) {
        for (std::int64_t page = 0; page < sequence_pages; ++page) {
            const bool counts = page * shape.page_keys < length;
            const std::int64_t number = test::draw(random, 0, shape.pages * 2 / 3);
            table.push_back(counts ? static_cast<std::int32_t>(number)
                                   : std::numeric_limits<std::int32_t>::min());
            if (counts) is_used[static_cast<std::size_t>(number)] = true;
        }
    }
    attention_desc desc() const {
        attention_desc result;
        result.query = {shape.type, {sequences, shape.heads, shape.rows, shape.depth}};
        result.key = key.desc();
        result.value = value.desc();
        result.page_table = {data_type::i32, {sequences, sequence_pages}};
        result.grouped_queries = true;
        result.statistics = {data_type::f32, {sequences, shape.heads, shape.rows}};
        return result;
    }
    // Returns contiguous keys or values in the layout {sequences, keys, heads, columns}. Elements
    // past a sequence's length are NaN.
    std::vector<std::byte> joined(const cache& pages, std::int64_t columns) const {
        const std::int64_t keys = sequence_pages * shape.page_keys, width = shape.width();
        std::vector<std::byte> bytes(
            static_cast<std::size_t>(sequences * keys * shape.key_heads * columns * width),
            std::byte{0xFF});
        std::byte* dst = bytes.data();
        for (std::int64_t s = 0; s < sequences; ++s)
            for (std::int64_t i = 0; i < keys; ++i)
                for (std::int64_t h = 0; h < shape.key_heads; ++h)
                    for (std::int64_t c = 0; c < columns; ++c, dst += width)
                        if (i < lengths[static_cast<std::size_t>(s)])
                            std::memcpy(dst,
                                        pages.element(page_of(s, i), h, i % shape.page_keys, c),
                                        static_cast<std::size_t>(width));
        return bytes;
    }
    std::int64_t page_of(std::int64_t sequence, std::int64_t i) const {
        return table[static_cast<std::size_t>(sequence * sequence_pages + i / shape.page_keys)];
    }
    tensor_desc joined_desc(std::int64_t columns) const {
        const std::int64_t keys = sequence_pages * shape.page_keys, width = shape.width();
        const std::int64_t row = shape.key_heads * columns * width;
        return {shape.type,
                {sequences, shape.key_heads, keys, columns},
                {keys * row, columns * width, row, width}};
    }

    paged_shape shape;
    test::generator random;
    std::vector<std::int64_t> lengths;
    std::int64_t sequences = 0, sequence_pages = 0;
    std::vector<std::int32_t> table;
    cache key, value;
    std::vector<bool> is_used;
    std::vector<std::byte> query;
};

struct outputs {
    std::vector<std::byte> dst;
    std::vector<float> statistics;
};

outputs outputs_for(const paged_case& problem) {
    const paged_shape& shape = problem.shape;
    const auto rows = static_cast<std::size_t>(problem.sequences * shape.heads * shape.rows);
    return {std::vector<std::byte>(rows * static_cast<std::size_t>(shape.columns * shape.width())),
            std::vector<float>(rows)};
}

outputs run_paged(const paged_case& problem, const mask_rules& rules, const kernel_table& target) {
    const attention_desc desc = problem.desc();
    outputs result = outputs_for(problem);
    const auto plan = make_tile_plan(desc, target);
    const attention_operands operands{.query = problem.query.data(),
                                      .key = problem.key.memory.data(),
                                      .value = problem.value.memory.data(),
                                      .dst = result.dst.data(),
                                      .statistics = result.statistics.data(),
                                      .rules = &rules,
                                      .page_table = problem.table.data()};
    require_addresses(plan->desc, operands);
    require_rules(plan->desc, &rules);
    require_pages(*plan, operands);
    for (const cache* one : {&problem.key, &problem.value})
        one->protect(problem.is_used, PROT_NONE);
    run_attention(*plan, operands, nullptr);
    for (const cache* one : {&problem.key, &problem.value})
        one->protect(problem.is_used, PROT_READ | PROT_WRITE);
    return result;
}

outputs run_joined(const paged_case& problem, const mask_rules& rules, const kernel_table& target) {
    attention_desc desc = problem.desc();
    desc.page_table = {};
    desc.key = problem.joined_desc(problem.shape.depth);
    desc.value = problem.joined_desc(problem.shape.columns);
    const std::vector<std::byte> key = problem.joined(problem.key, problem.shape.depth);
    const std::vector<std::byte> value = problem.joined(problem.value, problem.shape.columns);
    outputs result = outputs_for(problem);
    run_attention(*make_tile_plan(desc, target),
                  {.query = problem.query.data(),
                   .key = key.data(),
                   .value = value.data(),
                   .dst = result.dst.data(),
                   .statistics = result.statistics.data(),
                   .rules = &rules},
                  nullptr);
    return result;
}

std::vector<std::int64_t> last_rows(const paged_case& problem) {
    std::vector<std::int64_t> offsets;
    for (const std::int64_t length : problem.lengths)
        offsets.push_back(length - problem.shape.rows);
    return offsets;
}

std::vector<mask_rules> rules_for(const paged_case& problem) {
    const std::vector<std::int64_t>& lengths = problem.lengths;
    std::vector<float> slopes{0.5F, 0.03F, 0, 2};
    slopes.resize(static_cast<std::size_t>(problem.shape.heads));
    return {{.lengths = lengths},
            {.offsets = last_rows(problem), .causal = true, .lengths = lengths},
            {.offsets = last_rows(problem),
             .causal = true,
             .window = key_window{.left = 20, .right = 0},
             .lengths = lengths},
            {.offsets = last_rows(problem), .causal = true, .lengths = lengths, .slopes = slopes}};
}

bool is_same(const outputs& a, const outputs& b) {
    return a.dst == b.dst && std::memcmp(a.statistics.data(), b.statistics.data(),
                                         a.statistics.size() * sizeof(float)) == 0;
}

class pages : public testing::TestWithParam<const kernel_table*> {
protected:
    static void check(const paged_case& problem) {
        for (const mask_rules& rules : rules_for(problem)) {
            const outputs paged = run_paged(problem, rules, *GetParam());
            ASSERT_TRUE(is_same(paged, run_joined(problem, rules, *GetParam())))
                << "pages of " << problem.shape.page_keys << ", " << problem.shape.rows << " rows, "
                << to_string(problem.shape.type) << ", slopes " << rules.slopes.size();
        }
    }
};

TEST_P(pages, give_the_bits_of_keys_without_pages) {
    std::uint64_t seed = test::base_seed();
    for (const data_type type : {data_type::f32, data_type::bf16, data_type::f16})
        for (const std::int64_t page_keys : {1, 3, 16, 64, 128, 256})
            for (const std::int64_t rows : {1, 5, 40, 150}) {
                const std::int64_t keys = std::min<std::int64_t>(page_keys * 9, 400);
                test::generator random(++seed);
                std::vector<std::int64_t> lengths{keys, 0, 1};
                for (int i = 0; i < 2; ++i) lengths.push_back(test::draw(random, 1, keys));
                check({seed, {.type = type, .page_keys = page_keys, .rows = rows}, lengths});
            }
}

TEST_P(pages, take_odd_shapes) {
    std::uint64_t seed = test::base_seed();
    for (const data_type type : {data_type::f32, data_type::bf16})
        for (const std::int64_t page_keys : {7, 64})
            for (const std::int64_t depth : {1, 3, 64})
                check({++seed,
                       {.type = type,
                        .page_keys = page_keys,
                        .rows = 40,
                        .heads = 3,
                        .key_heads = 1,
                        .depth = depth,
                        .columns = 65 - depth,
                        .pages = 40},
                       {200, 63, 65}});
}

// The contiguous reference's keys are not transposed, so products round differently.
TEST_P(pages, take_transposed_keys) {
    for (const data_type type : {data_type::f32, data_type::bf16})
        for (const std::int64_t page_keys : {5, 16, 64, 128})
            for (const std::int64_t rows : {1, 70}) {
                const paged_case problem(
                    7, {.type = type, .page_keys = page_keys, .rows = rows, .transposed = true},
                    {130, 33, 1});
                const mask_rules rules{.lengths = problem.lengths};
                const outputs paged = run_paged(problem, rules, *GetParam());
                const outputs wanted = run_joined(problem, rules, *GetParam());
                const auto number = [type](const outputs& one, std::size_t i) {
                    return test::load(one.dst.data() + i, test::element_of(type));
                };
                const double error = type == data_type::f32 ? 1e-5 : 2e-2;
                for (std::size_t i = 0; i < wanted.dst.size(); i += width_bytes(type))
                    ASSERT_NEAR(number(paged, i), number(wanted, i), error);
            }
}

INSTANTIATE_TEST_SUITE_P(targets, pages, testing::ValuesIn(attention_targets()),
                         [](const auto& instance) { return name_of(instance.param); });

std::string message_of(const paged_case& problem, const mask_rules& rules) {
    try {
        run_paged(problem, rules, *attention_targets()[0]);
    } catch (const argument_error& failure) {
        return failure.what();
    }
    return "";
}

TEST(pages, refuse_pages_that_the_cache_does_not_have) {
    paged_case problem(1, {.pages = 12}, {50, 16});
    const mask_rules rules{.lengths = problem.lengths};
    for (const std::int32_t wrong : {-1, 12, std::numeric_limits<std::int32_t>::max()}) {
        problem.table[3] = wrong;
        EXPECT_EQ(message_of(problem, rules),
                  "attention: page_table: page " + std::to_string(wrong) +
                      " (sequence 0, keys from 48) is not in the cache of 12 pages");
    }
    problem.table[3] = 0;
    problem.is_used[0] = true;
    EXPECT_EQ(message_of(problem, rules), "");
    EXPECT_NE(message_of(problem, mask_rules{}), ""); // without lengths, every entry must be valid
}

TEST(pages, refuse_invalid_descriptions) {
    const paged_case problem(1, {}, {50, 16});
    const auto refuses = [&](const auto& change) {
        attention_desc desc = problem.desc();
        change(desc);
        EXPECT_ANY_THROW(checked_attention(desc)) << to_string(desc.page_table.extents);
    };
    EXPECT_NO_THROW(checked_attention(problem.desc()));
    refuses([](attention_desc& desc) { desc.page_table = {data_type::i64, {2, 4}}; });
    refuses([](attention_desc& desc) { desc.page_table = {data_type::i32, {3, 4}}; });
    refuses([](attention_desc& desc) { desc.page_table = {data_type::i32, {8}}; });
    refuses([](attention_desc& desc) {
        desc.page_table.extents[1] = std::numeric_limits<std::int64_t>::max() / 8;
        desc.page_table.strides_bytes = {0, 0};
    });
    refuses([](attention_desc& desc) { desc.key.extents[0] = 11; });
    refuses([](attention_desc& desc) { desc.key.extents[2] = desc.value.extents[2] = 0; });
    refuses([](attention_desc& desc) { desc.query.extents[0] = 1; });
    refuses([](attention_desc& desc) { desc.fill = -3; });
    refuses([](attention_desc& desc) { desc.order = attention_order::operators; });
    EXPECT_THROW(make_gradients_plan({problem.desc()}, active_isa()), argument_error);
}

// The scratch memory added by pages does not depend on the number of keys.
TEST(pages, need_memory_for_a_tile) {
    const auto added = [](std::int64_t pages) {
        attention_desc desc;
        desc.query = {data_type::f32, {2, 8, 1, 64}};
        desc.key = desc.value = {data_type::f32, {99, 8, 16, 64}};
        desc.page_table = {data_type::i32, {2, pages}};
        attention_desc joined;
        joined.query = desc.query;
        joined.key = joined.value = {data_type::f32, {2, 8, pages * 16, 64}};
        return scratch_bytes(*make_tile_plan(desc, active_isa()), 2) -
               scratch_bytes(*make_tile_plan(joined, active_isa()), 2);
    };
    EXPECT_EQ(added(1 << 4), added(1 << 20));
    EXPECT_LT(added(1 << 20), 1 << 18);
}

} // namespace
} // namespace maskwise
