// Panel states are adjacent in memory, and different threads finish the states of one row tile. So
// merging or storing a state must not read or write past the state's last column.

#include "kernel/kernel_table.hpp"
#include "support/guarded_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace maskwise::test {
namespace {

std::span<float> floats_of(const guarded_buffer& buffer) {
    return {reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float)};
}

struct guarded_state {
    guarded_state(std::int64_t panel, std::int64_t columns, float value)
        : maximum(static_cast<std::size_t>(panel), 0), sum(static_cast<std::size_t>(panel), 1),
          values(static_cast<std::size_t>(panel * columns) * sizeof(float),
                 guarded_buffer::edge::back) {
        std::ranges::fill(floats_of(values), value);
    }
    panel_state state() { return {maximum.data(), sum.data(), floats_of(values).data()}; }

    std::vector<float> maximum, sum;
    guarded_buffer values;
};

void expect_values(const guarded_buffer& buffer, float wanted) {
    for (const float value : floats_of(buffer)) ASSERT_FLOAT_EQ(value, wanted);
}

void expect_merged_and_stored(const attention_kernels& kernels, std::int64_t columns) {
    const std::int64_t panel = kernels.panel();
    guarded_state into(panel, columns, 1), from(panel, columns, 3);
    kernels.merge(into.state(), from.state(), panel, columns, panel);
    expect_values(into.values, 4);
    const guarded_buffer dst(into.values.size(), guarded_buffer::edge::back);
    const std::vector<float> factors(static_cast<std::size_t>(panel), 0.5F);
    std::vector<float> work(static_cast<std::size_t>(panel * columns + row_block_elems));
    kernels.store_panel(into.state().values, factors.data(), panel, columns,
                        {dst.data(), elem_type::f32, 4 * columns, 4}, work.data());
    expect_values(dst, 2);
}

// Calls visit(kernels) for each panel width of each table of this machine.
template <typename Visit>
void for_each_panel_kernels(Visit visit) {
    const auto supported = supported_isas(native_cpu());
    for (const kernel_table* table : kernel_tables()) {
        if (std::ranges::count(supported, table->target) == 0) continue;
        SCOPED_TRACE(to_string(table->target));
        for (const attention_kernels* kernels :
             {&table->attention, &table->attention_panel_of_4, &table->attention_panel_of_1})
            if (kernels->panel != nullptr) {
                ASSERT_NO_FATAL_FAILURE(visit(*kernels));
            }
    }
}

TEST(panel_states, end_with_their_last_column) {
    for_each_panel_kernels([](const attention_kernels& kernels) {
        for (std::int64_t columns = 1; columns <= 17; ++columns) {
            SCOPED_TRACE("columns " + std::to_string(columns));
            ASSERT_NO_FATAL_FAILURE(expect_merged_and_stored(kernels, columns));
        }
    });
}

// Accumulates queries [first, last). All other queries have NaN sums, which must not be added.
void expect_accumulated_sums(const attention_kernels& kernels, std::int64_t first,
                             std::int64_t last, std::int64_t columns, bool has_factor) {
    const std::int64_t panel = kernels.panel();
    const bool is_wide = !kernels.takes_any_type; // values are [columns][panel]
    guarded_state into(panel, columns, 1), sums(panel, columns, NAN);
    const auto query_of = [&](std::int64_t i) { return is_wide ? i % panel : i / columns; };
    const auto is_accumulated = [&](std::int64_t i) {
        return query_of(i) >= first && query_of(i) < last;
    };
    std::vector<float> factor(static_cast<std::size_t>(panel));
    for (std::int64_t q = 0; q < panel; ++q)
        factor[static_cast<std::size_t>(q)] = static_cast<float>(q);
    const auto values = floats_of(sums.values);
    for (std::int64_t i = 0; i < std::ssize(values); ++i)
        if (is_accumulated(i)) values[static_cast<std::size_t>(i)] = 3;
    kernels.accumulate_sums(into.state().values, sums.state().values,
                            has_factor ? factor.data() : nullptr, first, last, columns);
    for (std::int64_t i = 0; i < std::ssize(values); ++i) {
        const float weight = 3 + (has_factor ? static_cast<float>(query_of(i)) : 0);
        ASSERT_EQ(floats_of(into.values)[static_cast<std::size_t>(i)],
                  is_accumulated(i) ? weight : 1)
            << i;
    }
}

TEST(panel_states, accumulate_only_the_given_queries) {
    for_each_panel_kernels([](const attention_kernels& kernels) {
        for (std::int64_t first = 0; first < kernels.panel(); ++first)
            for (std::int64_t last = first + 1; last <= kernels.panel(); ++last)
                for (const std::int64_t columns : {1, 5, 17})
                    for (const bool has_factor : {false, true}) {
                        SCOPED_TRACE("columns " + std::to_string(columns) + ", queries " +
                                     std::to_string(first) + " to " + std::to_string(last));
                        ASSERT_NO_FATAL_FAILURE(
                            expect_accumulated_sums(kernels, first, last, columns, has_factor));
                    }
    });
}

} // namespace
} // namespace maskwise::test
