// Expressions over whole tensors: every broadcast, dst in any order of dimensions, one thread and
// all, against the oracle element by element.

#include "exec/run_expression.hpp"

#include "base/error.hpp"
#include "jit/expression_oracle.hpp"
#include "jit/expression_run.hpp"
#include "support/guarded_buffer.hpp"

#include <cstring>
#include <numeric>

namespace maskwise::test {
namespace {

using jit::expression;
using jit::node;
using jit::node_kind;

constexpr std::array<int, 3> none{-1, -1, -1};

// select(cond, x >= y ? x : y, z) + 0.5, of one type.
expression masked_maximum(data_type type) {
    expression what;
    const int cond = what.add({node_kind::input, none, data_type::boolean});
    const int x = what.add({node_kind::input, none, type});
    const int y = what.add({node_kind::input, none, type});
    const int z = what.add({node_kind::input, none, type});
    const int compared = what.add({node_kind::greater_equal, {x, y, -1}});
    const int larger = what.add({node_kind::select, {compared, x, y}});
    const int selected = what.add({node_kind::select, {cond, larger, z}});
    const int half = what.add({node_kind::constant, none, {}, 0.5F});
    what.add({node_kind::add, {selected, half, -1}});
    what.result = type;
    return what;
}

// Dense strides of the extents in the given order of dimensions, the innermost first.
tensor_desc lay_out(data_type type, const dims& extents, const std::vector<int>& order) {
    tensor_desc desc{type, extents, dims::filled(extents.rank(), 0)};
    auto stride = static_cast<std::int64_t>(width_bytes(type));
    for (const int d : order) {
        desc.strides_bytes[d] = stride;
        stride *= std::max<std::int64_t>(extents[d], 1);
    }
    return desc;
}

struct tensor {
    tensor_desc desc;
    view layout;
    guarded_buffer memory;

    explicit tensor(const tensor_desc& described)
        : desc(described), layout{nullptr,
                                  {described.extents.begin(), described.extents.end()},
                                  {described.strides_bytes.begin(), described.strides_bytes.end()}},
          memory(static_cast<std::size_t>(span_bytes(described)), guarded_buffer::edge::back) {}

    std::uint32_t element(const std::vector<std::int64_t>& index) const {
        std::uint32_t bits = 0;
        std::memcpy(&bits, memory.data() + offset_bytes(layout, index), width_bytes(desc.type));
        return bits;
    }
};

// Of dst, innermost first; one in eight is another, which must be brought into dst's.
std::vector<int> draw_order(generator& random, std::vector<int> order) {
    if (one_in(random, 8)) std::shuffle(order.begin(), order.end(), random);
    return order;
}

// Inputs repeat along some dimensions.
tensor_desc draw_input(generator& random, data_type type, const tensor_desc& dst,
                       const std::vector<int>& order) {
    dims extents = dst.extents;
    for (std::int64_t& extent : extents)
        if (one_in(random, 3)) extent = 1;
    return lay_out(type, extents, draw_order(random, order));
}

// Elements that are not neighbours.
tensor_desc spread(tensor_desc desc) {
    for (std::int64_t& stride : desc.strides_bytes) stride *= 2;
    return desc;
}

class run_expression_test : public testing::TestWithParam<isa> {
protected:
    void check(const expression& what, const dims& shape, std::int64_t stream_from) {
        std::vector<int> order(static_cast<std::size_t>(shape.rank()));
        std::iota(order.rbegin(), order.rend(), 0);
        if (one_in(random_, 2)) std::shuffle(order.begin(), order.end(), random_);
        const tensor_desc dense = lay_out(what.result, shape, order);
        tensor dst(one_in(random_, 8) ? spread(dense) : dense);
        expression_desc desc{what, {}, dst.desc};
        std::vector<tensor> inputs;
        std::vector<const void*> pointers;
        for (const node& each : what.nodes) {
            if (each.kind != node_kind::input) continue;
            fill(inputs.emplace_back(draw_input(random_, each.type, dst.desc, order)));
            desc.inputs.push_back(inputs.back().desc);
            pointers.push_back(inputs.back().memory.data());
        }
        const auto plan = make_expression_plan(desc, GetParam(), stream_from);
        // The second execution finds the scratch memory of the first.
        for (int run = plan->reorderings.empty() ? 1 : 0; run < 2; ++run)
            run_expression(*plan, pointers, dst.memory.data());
        if (element_count(shape) == 0) return;
        std::vector<std::uint32_t> elements(inputs.size());
        std::vector<std::int64_t> index(dst.layout.extents.size(), 0);
        do {
            for (std::size_t k = 0; k < inputs.size(); ++k) elements[k] = inputs[k].element(index);
            ASSERT_EQ(complain(evaluate(what, elements), dst.element(index), what.result), "")
                << testing::PrintToString(index) << ", " << to_string(*plan);
        } while (test::advance(index, dst.layout.extents));
    }

    generator random_{base_seed()};

private:
    void fill(const tensor& to) {
        const std::size_t width = width_bytes(to.desc.type);
        for (std::size_t at = 0; at < to.memory.size(); at += width) {
            const std::uint32_t bits = draw_element(random_, to.desc.type);
            std::memcpy(to.memory.data() + at, &bits, width);
        }
    }
};

TEST_P(run_expression_test, agrees_on_every_broadcast) {
    for (const data_type type : {data_type::f32, data_type::bf16, data_type::f16})
        for (int i = 0; i < 300; ++i) {
            const auto rank = draw(random_, 0, 5);
            dims shape;
            for (std::int64_t d = 0; d < rank; ++d)
                shape.push_back(one_in(random_, 30) ? 0 : draw(random_, 1, 9));
            if (rank > 0 && one_in(random_, 3)) shape[0] = draw(random_, 20, 80);
            ASSERT_NO_FATAL_FAILURE(check(masked_maximum(type), shape, i % 2 == 0 ? 0 : 1 << 30));
        }
}

// Tiles of many rows, rows of many tiles, and more than one thread.
TEST_P(run_expression_test, agrees_where_large) {
    const expression what = masked_maximum(data_type::f32);
    for (const dims& shape : {dims{600000}, dims{3, 70000}, dims{2000, 130}, dims{20000, 3, 5}})
        for (const std::int64_t stream_from : {0, 1 << 30})
            ASSERT_NO_FATAL_FAILURE(check(what, shape, stream_from));
}

INSTANTIATE_TEST_SUITE_P(every_target, run_expression_test, testing::ValuesIn(jit_targets()),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

std::string refusal_of(const expression_desc& desc) {
    try {
        make_expression_plan(desc, jit_targets().back(), 0);
    } catch (const error& refusal) {
        return refusal.what();
    }
    return "";
}

expression abs_of_f32() {
    expression what;
    what.add({node_kind::input, none, data_type::f32});
    what.add({node_kind::abs, {0, -1, -1}});
    what.result = data_type::f32;
    return what;
}

TEST(expression_plan, refuses_what_it_cannot_walk) {
    const expression what = abs_of_f32();
    const tensor_desc dst = dense_desc(data_type::f32, {4, 5});
    EXPECT_EQ(refusal_of({what, {dst}, dst}), "");

    tensor_desc backwards = dst;
    backwards.strides_bytes = {-20, -4};
    EXPECT_EQ(refusal_of({what, {backwards}, backwards}), "");
    EXPECT_NE(refusal_of({what, {dst}, backwards}).find("steps by -16 bytes"), std::string::npos);
    EXPECT_NE(refusal_of({what, {dense_desc(data_type::f32, {4, 4})}, dst}).find("{4,4}"),
              std::string::npos);
    EXPECT_NE(refusal_of({what, {dense_desc(data_type::bf16, {4, 5})}, dst}).find("is not f32"),
              std::string::npos);
    EXPECT_NE(refusal_of({what, {}, dst}).find("more inputs"), std::string::npos);
    tensor_desc overlapping = dst;
    overlapping.strides_bytes = {4, 4};
    EXPECT_NE(refusal_of({what, {dst}, overlapping}).find("overlap"), std::string::npos);
}

TEST(expression_plan, brings_operands_into_the_order_of_dst) {
    const auto plan_of = [](const tensor_desc& input, const tensor_desc& dst) {
        return make_expression_plan({abs_of_f32(), {input}, dst}, jit_targets().back(), INT64_MAX);
    };
    const tensor_desc rows = dense_desc(data_type::f32, {4, 5});
    tensor_desc across = rows;
    across.strides_bytes = {4, 16};
    EXPECT_TRUE(plan_of(rows, rows)->reorderings.empty());
    EXPECT_TRUE(plan_of(across, across)->reorderings.empty());

    const auto one = plan_of(across, rows);
    ASSERT_EQ(one->reorderings.size(), 1U);
    EXPECT_EQ(one->reorderings[0].operand, 0U);
    EXPECT_EQ(one->desc.inputs[0], rows);
    EXPECT_EQ(one->scratch_bytes, 128U); // 80, to the next multiple of 64

    const auto both = plan_of(across, spread(rows));
    ASSERT_EQ(both->reorderings.size(), 2U);
    EXPECT_EQ(both->reorderings[0].operand, jit::dst_operand);
    EXPECT_EQ(both->reorderings[1].offset_bytes, 128U);
    EXPECT_EQ(both->desc.dst, rows);
    EXPECT_EQ(both->scratch_bytes, 256U);
}

TEST(expression_plan, streams_from_the_threshold_on_and_says_so) {
    const tensor_desc values = dense_desc(data_type::f32, {64});
    const expression_desc desc{masked_maximum(data_type::f32),
                               {dense_desc(data_type::boolean, {64}), values, values, values},
                               values};
    const isa target = jit_targets().back();
    EXPECT_EQ(make_expression_plan(desc, target, 256)->stores, store_policy::stream);
    const auto plain = make_expression_plan(desc, target, 257);
    EXPECT_EQ(plain->stores, store_policy::plain);
    EXPECT_EQ(to_string(*plain).rfind("expression,64,tile 1x64,plain,0=input():boolean ", 0), 0U)
        << to_string(*plain);
}

// 16 Ki elements: of long rows a part, of short ones many.
TEST(expression_plan, has_tiles_of_as_many_elements) {
    const auto tile = [](const dims& shape) {
        tensor_desc apart = dense_desc(data_type::f32, shape);
        if (shape.rank() > 1) apart.strides_bytes[0] += 4;
        const auto plan =
            make_expression_plan({abs_of_f32(), {apart}, apart}, jit_targets().back(), INT64_MAX);
        return std::array{plan->rows, plan->columns, plan->tiles};
    };
    EXPECT_EQ(tile({20000}), (std::array<std::int64_t, 3>{1, 16384, 2}));
    EXPECT_EQ(tile({16384}), (std::array<std::int64_t, 3>{1, 16384, 1}));
    EXPECT_EQ(tile({100, 1000}), (std::array<std::int64_t, 3>{16, 1000, 7}));
    EXPECT_EQ(tile({5, 1000}), (std::array<std::int64_t, 3>{5, 1000, 1}));
    EXPECT_EQ(tile({3, 40000}), (std::array<std::int64_t, 3>{1, 16384, 9}));
    EXPECT_EQ(tile({}), (std::array<std::int64_t, 3>{1, 1, 1}));
}

} // namespace
} // namespace maskwise::test
