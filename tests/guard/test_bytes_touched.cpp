// With the shipped kernels, a Select must not read unneeded source pages, write unchanged dst pages
// or allocate memory.

#include "exec/run_select.hpp"
#include "exec/tile_walk.hpp"
#include "plan/select_plan.hpp"
#include "support/allocations.hpp"
#include "touched_pages.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

namespace maskwise::guard {
namespace {

constexpr std::int64_t rows = 32;
const auto page = static_cast<std::int64_t>(watched_buffer::page_bytes());
const std::int64_t columns = page; // 4-byte elements: a row is four pages
constexpr std::int64_t always_stream = 0, never_stream = std::int64_t{1} << 40;

struct touched {
    std::vector<bool> src_0, src_1, dst;
};

std::vector<bool> pages_of_rows(const std::function<bool(std::int64_t)>& row) {
    std::vector<bool> pages;
    for (std::int64_t i = 0; i < rows * columns * 4 / page; ++i)
        pages.push_back(row(i * page / (columns * 4)));
    return pages;
}

bool even_row(std::int64_t row) {
    return row % 2 == 0;
}
bool odd_row(std::int64_t row) {
    return row % 2 != 0;
}
bool every_row(std::int64_t) {
    return true;
}
bool no_row(std::int64_t) {
    return false;
}

class bytes_touched : public testing::TestWithParam<std::tuple<isa, std::int64_t>> {
protected:
    // Runs a Select on {rows, columns}; cond is true in row r if is_true(r). dst is src_0 if
    // `in_place` is 0, src_1 if `in_place` is 1, else a separate buffer.
    touched run(const dims& cond_extents, const std::function<bool(std::int64_t)>& is_true,
                int in_place = -1) {
        const auto bytes = static_cast<std::size_t>(rows * columns * 4);
        const dims shape{rows, columns};
        const tensor_desc values = dense_desc(data_type::f32, shape);
        const tensor_desc mask = dense_desc(data_type::boolean, cond_extents);
        const auto [target, stream_from] = GetParam();
        const auto plan = build_plan({mask, values, values, values}, target, stream_from);
        watched_buffer cond(static_cast<std::size_t>(element_count(cond_extents)));
        const std::int64_t width = cond_extents[1];
        for (std::int64_t r = 0; r < rows; ++r)
            std::memset(cond.data() + r * width, is_true(r), static_cast<std::size_t>(width));
        watched_buffer src_0(bytes), src_1(bytes), separate_dst(bytes);
        watched_buffer& dst = in_place == 0 ? src_0 : in_place == 1 ? src_1 : separate_dst;
        for (watched_buffer* source : {&src_0, &src_1})
            if (source != &dst) source->begin(watched_buffer::watch::reads_and_writes);
        dst.begin(watched_buffer::watch::writes);
        run_select(*plan, cond.data(), src_0.data(), src_1.data(), dst.data());
        return {src_0.end(), src_1.end(), dst.end()};
    }
};

TEST_P(bytes_touched, read_only_the_selected_source) {
    for (const dims& cond : {dims{rows, columns}, dims{rows, 1}}) {
        const touched t = run(cond, even_row);
        EXPECT_EQ(t.src_0, pages_of_rows(even_row)) << to_string(cond);
        EXPECT_EQ(t.src_1, pages_of_rows(odd_row)) << to_string(cond);
        EXPECT_EQ(t.dst, pages_of_rows(every_row)) << to_string(cond);
    }
}

TEST_P(bytes_touched, of_a_uniform_mask_are_in_one_source) {
    EXPECT_EQ(run({rows, columns}, every_row).src_1, pages_of_rows(no_row));
    EXPECT_EQ(run({rows, columns}, no_row).src_0, pages_of_rows(no_row));
}

TEST_P(bytes_touched, in_place_are_only_changed_pages) {
    EXPECT_EQ(run({rows, columns}, even_row, 1).dst, pages_of_rows(even_row));
    EXPECT_EQ(run({rows, columns}, even_row, 0).dst, pages_of_rows(odd_row));
    EXPECT_EQ(run({rows, columns}, no_row, 1).dst, pages_of_rows(no_row));
}

// Excludes the scalar kernels, because they read both sources.
std::vector<std::tuple<isa, std::int64_t>> vector_targets() {
    std::vector<std::tuple<isa, std::int64_t>> result;
    for (const isa target : supported_isas(native_cpu()))
        if (target != isa::scalar)
            for (const std::int64_t stream : {always_stream, never_stream})
                result.emplace_back(target, stream);
    return result;
}

INSTANTIATE_TEST_SUITE_P(targets, bytes_touched, testing::ValuesIn(vector_targets()),
                         [](const auto& case_info) {
                             return std::string(to_string(std::get<0>(case_info.param))) +
                                    (std::get<1>(case_info.param) == always_stream ? "_stream"
                                                                                   : "_plain");
                         });

// The elements and the range of cond rows of all calls of count_tile, which replaces the kernel.
struct tile_count {
    std::int64_t elements = 0;
    const std::byte* lowest_cond = nullptr;
    const std::byte* highest_cond = nullptr;
};
tile_count counted;

void count_tile(const select_tile& tile) {
    counted.elements += tile.rows * tile.columns;
    const std::byte* last = tile.cond + (tile.rows - 1) * tile.cond_row_bytes;
    if (!counted.lowest_cond || tile.cond < counted.lowest_cond) counted.lowest_cond = tile.cond;
    if (last > counted.highest_cond) counted.highest_cond = last;
}

TEST(work, reads_a_broadcast_mask_in_place_and_runs_each_element_once) {
    const tensor_desc values = dense_desc(data_type::f32, {4, 6, 128, 256});
    for (const dims& shape : {dims{128, 256}, dims{4, 1, 1, 256}, dims{4, 6, 128, 1}, dims{}}) {
        const tensor_desc mask = dense_desc(data_type::boolean, shape);
        const auto plan = build_plan({mask, values, values, values}, isa::scalar, never_stream);
        std::vector<std::byte> cond(static_cast<std::size_t>(element_count(shape)));
        counted = {};
        // The null pointers are safe, because count_tile reads nothing.
        run_tiles(*plan, count_tile, {cond.data(), nullptr, nullptr, nullptr}, 0, plan->tiles);
        EXPECT_EQ(counted.elements, element_count(values.extents)) << to_string(shape);
        EXPECT_GE(counted.lowest_cond, cond.data()) << to_string(shape);
        EXPECT_LT(counted.highest_cond, cond.data() + cond.size()) << to_string(shape);
    }
}

TEST(work, allocates_nothing) {
    for (const dims& shape : {dims{64}, dims{32, 64}, dims{100, 3}, dims{3, 5, 7}}) {
        const tensor_desc values = dense_desc(data_type::f32, shape);
        dims row_shape = shape;
        row_shape[shape.rank() - 1] = 1;
        for (const dims& cond_shape : {shape, row_shape, dims{}}) {
            const tensor_desc mask = dense_desc(data_type::boolean, cond_shape);
            const auto plan = build_plan({mask, values, values, values}, isa::scalar, never_stream);
            std::vector<float> data(static_cast<std::size_t>(element_count(shape)));
            std::vector<char> cond(static_cast<std::size_t>(element_count(cond_shape)), 1);
            const std::int64_t before = test::allocations();
            run_select(*plan, cond.data(), data.data(), data.data(), data.data());
            EXPECT_EQ(test::allocations() - before, 0) << to_string(cond_shape) << to_string(shape);
        }
    }
}

} // namespace
} // namespace maskwise::guard
