// Random Selects of every layout against the byte-moving reference, for every instruction set of
// this machine.

#include "support/case_generator.hpp"
#include "support/guarded_buffer.hpp"
#include "support/oracle.hpp"

#include "base/cpu.hpp"
#include "exec/run_select.hpp"
#include "exec/tile_walk.hpp"
#include "plan/plan_data.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <memory>

namespace maskwise::test {
namespace {

tensor_desc describe(const view& operand, data_type type) {
    tensor_desc desc{type, {}, {}};
    for (const std::int64_t extent : operand.extents) desc.extents.push_back(extent);
    for (const std::int64_t stride : operand.strides_bytes) desc.strides_bytes.push_back(stride);
    return desc;
}

data_type type_of_width(std::int64_t width_bytes) {
    switch (width_bytes) {
    case 1:
        return data_type::u8;
    case 2:
        return data_type::bf16;
    case 4:
        return data_type::f32;
    case 8:
        return data_type::f64;
    default:
        return data_type::complex128;
    }
}

// The buffers of one case, filled, and what dst must hold afterwards.
class select_data {
public:
    select_data(generator& random, select_case& layouts) : layouts_(layouts) {
        place(random, layouts.cond, 1, cond_);
        place(random, layouts.dst, layouts.width_bytes, dst_);
        place_source(random, layouts.src_0, 0, src_0_);
        place_source(random, layouts.src_1, 1, src_1_);
        fill_mask(random, cond_->data(), cond_->size());
        sources_ = {bytes(*src_0_), bytes(*src_1_)};
        expect();
    }

    ::testing::AssertionResult is_right() const {
        if (!holds(*dst_, expected_)) return ::testing::AssertionFailure() << "dst is wrong";
        if (layouts_.in_place != 0 && !holds(*src_0_, sources_[0]))
            return ::testing::AssertionFailure() << "src_0 was written";
        if (layouts_.in_place != 1 && !holds(*src_1_, sources_[1]))
            return ::testing::AssertionFailure() << "src_1 was written";
        return ::testing::AssertionSuccess();
    }

private:
    using buffer = std::shared_ptr<guarded_buffer>;

    static std::vector<std::byte> bytes(const guarded_buffer& from) {
        std::vector<std::byte> copy(from.size());
        if (!copy.empty()) std::memcpy(copy.data(), from.data(), copy.size());
        return copy;
    }

    static bool holds(const guarded_buffer& buffer, const std::vector<std::byte>& wanted) {
        return wanted.empty() || std::memcmp(buffer.data(), wanted.data(), wanted.size()) == 0;
    }

    static void place(generator& random, view& operand, std::int64_t width, buffer& into) {
        const auto edge =
            one_in(random, 2) ? guarded_buffer::edge::front : guarded_buffer::edge::back;
        const auto size = static_cast<std::size_t>(test::span_bytes(operand, width));
        into = std::make_shared<guarded_buffer>(size, edge);
        operand.data = into->data() + (size == 0 ? 0 : test::bytes_below(operand));
        fill_random(random, into->data(), size);
    }

    void place_source(generator& random, view& operand, int which, buffer& into) {
        place(random, operand, layouts_.width_bytes, into);
        if (layouts_.in_place != which) return;
        into = dst_;
        operand.data = layouts_.dst.data;
    }

    // Runs the reference on dst's buffer, keeps the result, puts the old bytes back.
    void expect() {
        const auto before = bytes(*dst_);
        select_reference(layouts_.cond, layouts_.src_0, layouts_.src_1, layouts_.dst,
                         layouts_.width_bytes);
        expected_ = bytes(*dst_);
        if (!before.empty()) std::memcpy(dst_->data(), before.data(), before.size());
    }

    const select_case& layouts_;
    buffer cond_, src_0_, src_1_, dst_;
    std::array<std::vector<std::byte>, 2> sources_;
    std::vector<std::byte> expected_;
};

select_desc describe(const select_case& layouts) {
    const data_type type = type_of_width(layouts.width_bytes);
    return {describe(layouts.cond, data_type::boolean), describe(layouts.src_0, type),
            describe(layouts.src_1, type), describe(layouts.dst, type)};
}

// As run_select would deal the tiles out, with ends anywhere, also for small cases.
void run_in_parts(generator& random, const select_plan& plan, const select_case& layouts) {
    const operand_pointers at{layouts.cond.data, layouts.src_0.data, layouts.src_1.data,
                              layouts.dst.data};
    const select_fn kernel = layouts.in_place < 0 ? plan.run : plan.run_plain;
    for (std::int64_t first = 0; first < plan.tiles;) {
        const std::int64_t last = draw(random, first + 1, plan.tiles);
        run_tiles(plan, kernel, at, first, last);
        first = last;
    }
}

void check_case(std::uint64_t seed, isa target, std::int64_t most_elements) {
    generator random(seed);
    select_case layouts = make_case(random, most_elements);
    const std::int64_t stream_from =
        one_in(random, 2) ? 0 : std::numeric_limits<std::int64_t>::max();
    const auto plan = build_plan(describe(layouts), target, stream_from);
    SCOPED_TRACE("MASKWISE_TEST_SEED for this case: " + std::to_string(seed) + '\n' +
                 to_string(layouts) + '\n' + maskwise::to_string(*plan));
    const select_data data(random, layouts);
    if (one_in(random, 2))
        run_in_parts(random, *plan, layouts);
    else
        run_select(*plan, layouts.cond.data, layouts.src_0.data, layouts.src_1.data,
                   layouts.dst.data);
    ASSERT_TRUE(data.is_right());
}

// Sanitizers make each case ten and more times slower; they look for what every case shows.
constexpr std::uint64_t thinned(std::uint64_t cases) {
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
        for (std::uint64_t i = 0; i < thinned(cases) && !HasFatalFailure(); ++i)
            check_case(base_seed() + i, GetParam(), most_elements);
    }
};

TEST_P(oracle, small_shapes) {
    check(10000, 3000);
}

TEST_P(oracle, shapes_of_many_tiles) {
    check(1500, 100000);
}

// Large enough for run_select to use several threads.
TEST_P(oracle, shapes_in_parallel) {
    check(60, 4000000);
}

// The cases above would prove little if they missed a way in which tiles are made.
TEST(oracle_coverage, every_form_and_access_occurs) {
    std::map<std::string, int> seen;
    for (std::uint64_t i = 0; i < 1500; ++i) {
        generator random(base_seed() + i);
        const auto plan = build_plan(describe(make_case(random, 100000)), isa::scalar, 0);
        ++seen[plan->tile.form == tile_form::flat ? "flat" : "rows"];
        seen["split columns"] += plan->column_grid >= 0;
        seen["split rows"] += plan->row_grid >= 0;
        seen["constant cond"] += plan->cond_is_constant && plan->packs;
        for (std::size_t o = 0; o < operand_count; ++o)
            ++seen[std::to_string(o) + '/' +
                   std::to_string(static_cast<int>(plan->access[o].kind))];
    }
    for (const char* what : {"flat", "rows", "split columns", "split rows", "constant cond"})
        EXPECT_GE(seen[what], 20) << what;
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
