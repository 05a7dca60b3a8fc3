// Compares every Select kernel with plain loops, on every instruction set of this machine. Row
// lengths are around the vector length and the block size. Rows are next to guard pages.

#include "kernel_cases.hpp"

#include "support/case_generator.hpp"
#include "support/guarded_buffer.hpp"
#include "support/oracle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace maskwise::test {
namespace {

constexpr std::size_t rows = 3;

std::size_t row_bytes(column_class columns, std::size_t width, std::size_t n) {
    return columns == column_class::unit ? width * n : width;
}

// One operand. Its first row begins, or its last row ends, `shift` bytes from a guard page.
struct operand {
    operand(std::size_t bytes_per_row, std::size_t shift, guarded_buffer::edge edge)
        : row_bytes(bytes_per_row), buffer(rows * bytes_per_row + shift, edge),
          first(edge == guarded_buffer::edge::front ? buffer.data() + shift : buffer.data()) {}

    std::byte* row(std::size_t r) const { return first + r * row_bytes; }

    std::size_t row_bytes;
    guarded_buffer buffer;
    std::byte* first;
};

class tile_check {
public:
    tile_check(generator& random, const select_key& key, std::size_t n, int in_place)
        : key_(key), n_(n), in_place_(in_place),
          edge_(one_in(random, 2) ? guarded_buffer::edge::front : guarded_buffer::edge::back),
          width_(static_cast<std::size_t>(key.width_bytes)),
          cond_(row_bytes(key.cond, 1, n), shift(random), edge_),
          src_0_(row_bytes(key.src_0, width_, n), shift(random), edge_),
          src_1_(row_bytes(key.src_1, width_, n), shift(random), edge_),
          dst_(width_ * n, shift(random), edge_) {
        for (const operand* each : {&src_0_, &src_1_, &dst_})
            fill_random(random, each->buffer.data(), each->buffer.size());
        fill_mask(random, cond_.buffer.data(), cond_.buffer.size());
        expect();
    }

    ::testing::AssertionResult run(select_fn kernel) {
        const auto stride = [](const operand& o) { return static_cast<std::int64_t>(o.row_bytes); };
        const operand& first = in_place_ == 0 ? dst_ : src_0_;
        const operand& second = in_place_ == 1 ? dst_ : src_1_;
        kernel({cond_.first, first.first, second.first, dst_.first, static_cast<std::int64_t>(rows),
                static_cast<std::int64_t>(n_), stride(cond_), stride(first), stride(second),
                stride(dst_)});
        finish_streaming();
        const std::byte* from = dst_.buffer.data();
        if (expected_.empty() || std::memcmp(from, expected_.data(), expected_.size()) == 0)
            return ::testing::AssertionSuccess();
        return ::testing::AssertionFailure() << to_string(key_) << " n=" << n_;
    }

private:
    static std::size_t shift(generator& random) {
        return static_cast<std::size_t>(draw(random, 0, 70));
    }

    view view_of(std::byte* first, column_class columns, std::size_t width) const {
        const auto in_row = static_cast<std::int64_t>(row_bytes(columns, width, n_));
        const auto step = static_cast<std::int64_t>(columns == column_class::unit ? width : 0);
        return {first, {rows, static_cast<std::int64_t>(n_)}, {in_row, step}};
    }

    void expect() {
        expected_.assign(dst_.buffer.data(), dst_.buffer.data() + dst_.buffer.size());
        const view dst = view_of(expected_.data() + (dst_.first - dst_.buffer.data()),
                                 column_class::unit, width_);
        select_reference(view_of(cond_.first, key_.cond, 1),
                         in_place_ == 0 ? dst : view_of(src_0_.first, key_.src_0, width_),
                         in_place_ == 1 ? dst : view_of(src_1_.first, key_.src_1, width_), dst,
                         key_.width_bytes);
    }

    select_key key_;
    std::size_t n_;
    int in_place_;
    guarded_buffer::edge edge_;
    std::size_t width_;
    operand cond_, src_0_, src_1_, dst_;
    std::vector<std::byte> expected_;
};

// Sizes 1 to 70 (the longest vector has 64 bytes), and sizes around the block sizes.
std::vector<std::size_t> sizes() {
    std::vector<std::size_t> counts;
    for (std::size_t n = 1; n <= 70; ++n) counts.push_back(n);
    for (const std::size_t n : {95U, 127U, 128U, 129U, 255U, 256U, 257U, 300U, 511U, 600U, 1100U})
        counts.push_back(n);
    return counts;
}

class select_kernels : public ::testing::TestWithParam<kernel_case<select_kernel>> {};

TEST_P(select_kernels, match_plain_loops) {
    const select_key& key = GetParam().kernel.key;
    generator random(base_seed());
    for (const std::size_t n : sizes())
        for (int i = 0; i < 3; ++i) {
            tile_check check(random, key, n, -1);
            ASSERT_TRUE(check.run(GetParam().kernel.run));
        }
}

TEST_P(select_kernels, work_in_place) {
    const select_key& key = GetParam().kernel.key;
    generator random(base_seed() + 1);
    for (const std::size_t n : sizes())
        for (const int side : {0, 1}) {
            if ((side == 0 ? key.src_0 : key.src_1) != column_class::unit) continue;
            tile_check check(random, key, n, side);
            ASSERT_TRUE(check.run(GetParam().kernel.run));
        }
}

INSTANTIATE_TEST_SUITE_P(every_kernel, select_kernels,
                         ::testing::ValuesIn(cases_of(&kernel_table::selects)),
                         [](const auto& parameter) { return parameter.param.name(); });

class pick_kernels : public ::testing::TestWithParam<kernel_case<pick_kernel>> {};

// Each element comes from a random position of its source row. Offsets of unselected elements point
// past the buffer.
TEST_P(pick_kernels, read_only_selected_elements_at_their_offsets) {
    const auto [width_bytes, cond_class] = GetParam().kernel.key;
    const auto width = static_cast<std::size_t>(width_bytes);
    generator random(base_seed() + 2);
    for (const std::size_t n : sizes()) {
        const std::size_t places = 3 * n;
        operand cond(row_bytes(cond_class, 1, n), 0, guarded_buffer::edge::back);
        operand dst(width * n, 0, guarded_buffer::edge::back);
        const operand src[] = {{width * places, 0, guarded_buffer::edge::back},
                               {width * places, 0, guarded_buffer::edge::back}};
        for (const operand& each : src) fill_random(random, each.buffer.data(), each.buffer.size());
        fill_mask(random, cond.buffer.data(), cond.buffer.size());
        const auto stride = [](const operand& o) { return static_cast<std::int64_t>(o.row_bytes); };
        for (std::size_t r = 0; r < rows; ++r) {
            std::vector<std::int32_t> offsets;
            std::vector<std::byte> expected(width * n);
            for (std::size_t c = 0; c < n; ++c) {
                const auto choice = cond.row(r)[cond_class == column_class::unit ? c : 0];
                const std::size_t side = choice != std::byte{0} ? 0 : 1;
                const auto place =
                    width * static_cast<std::size_t>(draw(random, 0, static_cast<int>(places) - 1));
                const auto beyond = static_cast<std::int32_t>(rows * width * places);
                offsets.push_back(side == 1 ? static_cast<std::int32_t>(place) : beyond);
                offsets.push_back(side == 0 ? static_cast<std::int32_t>(place) : beyond);
                std::memcpy(&expected[c * width], src[side].row(r) + place, width);
            }
            GetParam().kernel.run({cond.row(r), src[0].row(r), src[1].row(r), dst.row(r), 1,
                                   static_cast<std::int64_t>(n), stride(cond), stride(src[0]),
                                   stride(src[1]), stride(dst)},
                                  offsets.data());
            ASSERT_EQ(std::memcmp(dst.row(r), expected.data(), expected.size()), 0) << "n=" << n;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(every_kernel, pick_kernels,
                         ::testing::ValuesIn(cases_of(&kernel_table::picks)),
                         [](const auto& parameter) { return parameter.param.name(); });

// Prints the instruction sets, because a machine tests only the sets that it has.
TEST(kernel_table, exists_for_every_instruction_set_of_this_machine) {
    const auto supported = supported_isas(native_cpu());
    std::string run, missing;
    for (const kernel_table* table : kernel_tables()) {
        const bool is_here = std::count(supported.begin(), supported.end(), table->target) != 0;
        (is_here ? run : missing).append(" ").append(to_string(table->target));
    }
    std::printf("instruction sets: run%s; not on this machine%s\n", run.c_str(),
                missing.empty() ? " -" : missing.c_str());
    for (const isa target : supported) EXPECT_NO_THROW(kernel_table_for(target));
}

TEST(kernel_table, has_every_key_once_for_every_target) {
    ASSERT_FALSE(kernel_tables().empty());
    for (const kernel_table* table : kernel_tables()) {
        EXPECT_EQ(table->selects.size(), 80U);
        EXPECT_EQ(table->picks.size(), 2U);
        EXPECT_EQ(table->packs.size(), 25U);
        for (const select_kernel& kernel : table->selects)
            EXPECT_EQ(&find_kernel(table->selects, kernel.key), &kernel) << to_string(kernel.key);
        for (const pick_kernel& kernel : table->picks)
            EXPECT_EQ(&find_kernel(table->picks, kernel.key), &kernel) << to_string(kernel.key);
        for (const pack_kernel& kernel : table->packs)
            EXPECT_EQ(&find_kernel(table->packs, kernel.key), &kernel) << to_string(kernel.key);
    }
}

} // namespace
} // namespace maskwise::test
