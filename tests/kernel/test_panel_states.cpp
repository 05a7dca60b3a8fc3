// States of panels lie side by side, those of row tiles that different threads finish: what joins
// and stores one may not touch what lies behind its last column, not even to read.

#include "kernel/kernel_table.hpp"
#include "support/guarded_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

void expect_all(const guarded_buffer& buffer, float wanted) {
    for (const float value : floats_of(buffer)) ASSERT_FLOAT_EQ(value, wanted);
}

void expect_joined_and_stored(const attention_kernels& kernels, std::int64_t columns) {
    const std::int64_t panel = kernels.panel();
    guarded_state into(panel, columns, 1), from(panel, columns, 3);
    kernels.merge(into.state(), from.state(), panel, columns, panel);
    expect_all(into.values, 4);
    const guarded_buffer dst(into.values.size(), guarded_buffer::edge::back);
    const std::vector<float> factors(static_cast<std::size_t>(panel), 0.5F);
    std::vector<float> work(static_cast<std::size_t>(panel * columns + row_block_elems));
    kernels.store_panel(into.state().values, factors.data(), panel, columns,
                        {dst.data(), row_type::f32, 4 * columns, 4}, work.data());
    expect_all(dst, 2);
}

TEST(panel_states, end_with_their_last_column) {
    const auto supported = supported_isas(native_cpu());
    for (const kernel_table* table : kernel_tables()) {
        if (std::ranges::count(supported, table->target) == 0) continue;
        for (const attention_kernels* kernels :
             {&table->attention, &table->attention_of_few, &table->attention_of_one})
            for (std::int64_t columns = 1; columns <= 17 && kernels->panel != nullptr; ++columns) {
                SCOPED_TRACE(std::string(to_string(table->target)) + ", columns " +
                             std::to_string(columns));
                ASSERT_NO_FATAL_FAILURE(expect_joined_and_stored(*kernels, columns));
            }
    }
}

} // namespace
} // namespace maskwise::test
