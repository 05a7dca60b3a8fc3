// On each instruction set, an in-place Select must store only to blocks of a row that change.

#include "written_lines.hpp"

#include "exec/run_select.hpp"
#include "plan/select_plan.hpp"
#include "touched_pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace maskwise::guard {
namespace {

TEST(written_bytes, count_every_stored_line_even_if_unchanged) {
    watched_buffer buffer(2 * watched_buffer::page_bytes());
    const auto bytes = static_cast<std::int64_t>(2 * watched_buffer::page_bytes());
    auto* const words = reinterpret_cast<volatile std::uint64_t*>(buffer.data());
    const auto store = [words, bytes] {
        words[0] = 0; // stores the current value
        words[1] = 1;
        words[8] = words[9]; // stores to the second line
        words[bytes / 8 - 1] = 1;
    };
    EXPECT_EQ(test::written_bytes(buffer.data(), bytes, store), 3 * 64);
    EXPECT_EQ(test::written_bytes(buffer.data(), bytes, [] {}), 0);
    words[1] = 2; // must not fault after the watch
}

class lines_written : public testing::TestWithParam<std::tuple<isa, int>> {};

TEST_P(lines_written, in_place_are_only_in_changed_blocks) {
    constexpr std::int64_t blocks = 64;
    const auto [target, in_place] = GetParam();
    for (const data_type type : {data_type::i8, data_type::f16, data_type::f32, data_type::i64}) {
        const auto width = static_cast<std::int64_t>(width_bytes(type));
        // An upper bound on the elements of every kernel's block.
        const std::int64_t block = std::max<std::int64_t>(256 / width, 64);
        const std::int64_t changing_bytes = blocks / 4 * block * width;
        const dims shape{blocks * block};
        const tensor_desc values = dense_desc(type, shape);
        const tensor_desc mask = dense_desc(data_type::boolean, shape);
        const auto plan = build_plan({mask, values, values, values}, target, 0);
        std::vector<std::byte> cond(static_cast<std::size_t>(shape[0]), std::byte(in_place == 0));
        for (std::int64_t b = 0; b < blocks; b += 4) // one element of every fourth block
            cond[static_cast<std::size_t>(b * block + b % block)] = std::byte(in_place != 0);
        const std::int64_t bytes = shape[0] * width;
        watched_buffer src_0(static_cast<std::size_t>(bytes));
        watched_buffer src_1(static_cast<std::size_t>(bytes));
        std::byte* const dst = (in_place == 0 ? src_0 : src_1).data();
        const auto run = [&] { run_select(*plan, cond.data(), src_0.data(), src_1.data(), dst); };
        const auto written = test::written_bytes(dst, bytes, run);
        EXPECT_LE(written, changing_bytes) << width;
        EXPECT_GE(written, blocks / 4 * 64) << width;
    }
}

// Excludes the scalar kernels, which do not skip unchanged blocks.
std::vector<isa> vector_targets() {
    std::vector<isa> result = supported_isas(native_cpu());
    std::erase(result, isa::scalar);
    return result;
}

INSTANTIATE_TEST_SUITE_P(targets, lines_written,
                         testing::Combine(testing::ValuesIn(vector_targets()),
                                          testing::Values(0, 1)),
                         [](const auto& case_info) {
                             return std::string(to_string(std::get<0>(case_info.param))) + "_src_" +
                                    std::to_string(std::get<1>(case_info.param));
                         });

} // namespace
} // namespace maskwise::guard
