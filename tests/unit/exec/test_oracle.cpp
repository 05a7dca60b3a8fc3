// Compares random Selects of every layout with the byte-moving reference, on every instruction set
// of this machine.

#include "checked_run.hpp"

#include "exec/run_select.hpp"
#include "plan/select_plan.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace maskwise::test {
namespace {

void check_case(generator& random, std::uint64_t seed, isa target, const select_case& layouts) {
    SCOPED_TRACE("MASKWISE_TEST_SEED for this case: " + std::to_string(seed) + '\n' +
                 to_string(layouts));
    ASSERT_EQ(checked_run(random, layouts, target), "");
}

// Sanitizers are slow, so they run fewer cases.
constexpr std::uint64_t reduced(std::uint64_t cases) {
#if defined(__SANITIZE_THREAD__)
    return cases / 20 + 2;
#elif defined(__SANITIZE_ADDRESS__)
    return cases / 4;
#else
    return cases;
#endif
}

class oracle : public ::testing::TestWithParam<isa> {
protected:
    void check(std::uint64_t cases, std::int64_t most_elements) const {
        check(cases, [&](generator& random) { return make_case(random, most_elements); });
    }
    void check(std::uint64_t cases, const std::function<select_case(generator&)>& make) const {
        for (std::uint64_t i = 0; i < reduced(cases) && !HasFatalFailure(); ++i) {
            generator random(base_seed() + i);
            const select_case sample = make(random);
            check_case(random, base_seed() + i, GetParam(), sample);
        }
    }
};

TEST_P(oracle, small_shapes) {
    check(10000, 3000);
}

TEST_P(oracle, shapes_of_many_tiles) {
    check(1500, 100000);
}

TEST_P(oracle, permuted_shapes) {
    check(40, make_permuted_case);
}

// src_0 has runs of 257 elements, so a tile may end after one element of a run. All runs of src_1
// have one element.
TEST_P(oracle, runs_that_end_in_one_element) {
    const view cond{nullptr, {5, 129, 1}, {129, 1, 1}};
    const auto source = [](std::vector<std::int64_t> strides_bytes) {
        return view{nullptr, {5, 129, 257}, std::move(strides_bytes)};
    };
    check(5, [&](generator&) {
        return select_case{16, cond, source({4160, 20800, 16}), source({16, 80, 10320}),
                           source({530448, 4112, 16})};
    });
}

// Each row of cond ends at a page boundary, and the next page is not readable.
TEST_P(oracle, reads_no_page_between_rows_that_run_backwards) {
    constexpr std::int64_t rows = 600, columns = 9;
    const std::int64_t page = sysconf(_SC_PAGESIZE), row_bytes = 2 * page;
    const auto bytes = static_cast<std::size_t>(rows * row_bytes);
    auto* const memory =
        static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    ASSERT_NE(static_cast<void*>(memory), MAP_FAILED);
    for (std::int64_t r = 0; r < rows; ++r)
        mprotect(memory + r * row_bytes + page, static_cast<std::size_t>(page), PROT_NONE);
    std::byte* const cond = memory + (rows - 1) * row_bytes + page - (2 * columns - 1);
    std::vector<float> ones(rows * columns, 1), dst(rows * columns), wanted(rows * columns);
    for (std::size_t i = 0; i < wanted.size(); i += 3) {
        const auto [row, column] = std::div(static_cast<std::int64_t>(i), columns);
        cond[2 * column - row * row_bytes] = std::byte{1};
        wanted[i] = 1;
    }
    const tensor_desc dense = dense_desc(data_type::f32, {rows, columns});
    const auto plan = build_plan({{data_type::boolean, {rows, columns}, {-row_bytes, 2}},
                                  dense,
                                  dense_desc(data_type::f32, {}),
                                  dense},
                                 GetParam(), 0);
    ASSERT_GT(plan->tiles, 1);
    const float zero = 0;
    run_select(*plan, cond, ones.data(), &zero, dst.data());
    EXPECT_EQ(dst, wanted);
    munmap(memory, bytes);
}

// src_0's frames begin one tile width apart, like frames of a signal. Full tiles of adjacent frames
// are contiguous and read in place. Tail tiles at the frames' ends are packed.
TEST_P(oracle, frames_one_tile_apart) {
    const std::vector<std::int64_t> extents{891, 271};
    select_case frames{4,
                       {nullptr, extents, {1, 891}},
                       {nullptr, extents, {1084, 4}},
                       {nullptr, extents, {1084, 4}},
                       {nullptr, extents, {2168, 8}}};
    const auto plan = build_plan(describe(frames), GetParam(), 0);
    frames.src_0.strides_bytes[0] = 4 * plan->tile[0];
    check(3, [&](generator&) { return frames; });
}

TEST_P(oracle, shapes_in_parallel) {
    check(60, 4000000);
}

// The cases above must cover every way to form tiles.
TEST(oracle_coverage, every_form_and_access_occurs) {
    std::map<std::string, int> seen;
    for (std::uint64_t i = 0; i < 1500; ++i) {
        generator random(base_seed() + i);
        const bool permuted = i % 3 == 0;
        const select_case sample =
            permuted ? make_permuted_case(random) : make_case(random, 100000);
        const auto plan = build_plan(describe(sample), isa::scalar, 0);
        if (plan->tiles == 0) continue;
        ++seen[plan->shapes[0].rows > 1 ? "rows" : "one row"];
        ++seen[std::to_string(plan->shapes.size()) + " shapes"];
        seen["one cond per row"] +=
            plan->packs && plan->shapes[0].access[op_cond].columns == column_class::zero;
        seen["picks"] += plan->pick != nullptr;
        for (std::size_t o = 0; o < operand_count; ++o)
            ++seen[std::to_string(o) + '/' +
                   std::to_string(static_cast<int>(plan->shapes[0].access[o].kind))];
    }
    for (const char* reason : {"one row", "rows", "1 shapes", "2 shapes", "4 shapes", "8 shapes",
                               "one cond per row", "picks"})
        EXPECT_GE(seen[reason], 20) << reason;
    for (const access_kind kind : {access_kind::direct, access_kind::repeat, access_kind::gather,
                                   access_kind::splat, access_kind::transpose})
        for (const std::size_t o : {op_cond, op_src_0, op_src_1})
            EXPECT_GE(seen[std::to_string(o) + '/' + std::to_string(static_cast<int>(kind))], 5);
    EXPECT_GE(
        seen[std::to_string(op_dst) + '/' + std::to_string(static_cast<int>(access_kind::scatter))],
        20);
}

INSTANTIATE_TEST_SUITE_P(every_isa, oracle, ::testing::ValuesIn(supported_isas(native_cpu())),
                         [](const auto& parameter) {
                             return std::string(maskwise::to_string(parameter.param));
                         });

} // namespace
} // namespace maskwise::test
