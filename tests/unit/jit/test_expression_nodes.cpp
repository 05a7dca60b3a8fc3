// Every kind of node on every type, instruction set, size around the vector and combination of
// moving and standing inputs.

#include "base/error.hpp"
#include "jit/expression_oracle.hpp"
#include "jit/expression_run.hpp"
#include "support/numbers.hpp"

#include <array>

namespace maskwise::test {
namespace {

using jit::expression;
using jit::node;
using jit::node_kind;

constexpr data_type floats[] = {data_type::f32, data_type::bf16, data_type::f16};

constexpr node_kind all_kinds[] = {
#define MASKWISE_NODE(name, arguments) node_kind::name,
#include "jit/node_kinds.inc"
#undef MASKWISE_NODE
};

// The node alone on inputs of the type; a comparison decides between two more.
expression alone(const node& what, data_type type) {
    expression made;
    node next = what;
    for (std::size_t i = 0; i < argument_count(what.kind); ++i) {
        const bool is_cond = what.kind == node_kind::select && i == 0;
        next.arguments[i] =
            made.add({node_kind::input, {-1, -1, -1}, is_cond ? data_type::boolean : type});
    }
    const int last = made.add(next);
    made.result = type;
    if (what.kind == node_kind::quantize) made.result = what.type;
    if (what.kind == node_kind::greater_equal) {
        const int kept = made.add({node_kind::input, {-1, -1, -1}, type});
        const int other = made.add({node_kind::input, {-1, -1, -1}, type});
        made.add({node_kind::select, {last, kept, other}});
    }
    return made;
}

// The kind with each of its types and some of its numbers.
std::vector<node> variants(node_kind kind) {
    const std::array<int, 3> none{-1, -1, -1};
    std::vector<node> found;
    if (kind == node_kind::type_cast)
        for (const data_type to : floats) found.push_back({kind, none, to});
    else if (kind == node_kind::quantize)
        found = {{kind, none, data_type::i8, 0.37F, -3.0F},
                 {kind, none, data_type::u8, 0.125F, 128.0F}};
    else if (kind == node_kind::leaky_relu)
        found = {{kind, none, data_type::undef, 0.01F}, {kind, none, data_type::undef, -2.0F}};
    else if (kind == node_kind::clamp)
        found = {{kind, none, data_type::undef, -1.5F, 0.75F}};
    else
        found = {{kind, none}};
    return found;
}

std::size_t input_count(const expression& what) {
    std::size_t count = 0;
    for (const node& each : what.nodes) count += each.kind == node_kind::input ? 1U : 0U;
    return count;
}

struct node_case {
    isa target;
    node_kind kind;
};

std::string name_of(const testing::TestParamInfo<node_case>& which) {
    return std::string(to_string(which.param.target)) + '_' +
           std::string(to_string(which.param.kind));
}

std::vector<node_case> all_cases() {
    std::vector<node_case> found;
    for (const isa target : jit_targets())
        for (const node_kind kind : all_kinds) found.push_back({target, kind});
    return found;
}

class expression_nodes : public testing::TestWithParam<node_case> {
protected:
    // Every combination of moving and standing inputs, every size up to a little above two vectors
    // and some beyond.
    void try_all_shapes(const expression& what) {
        const std::size_t inputs = input_count(what);
        for (unsigned moving = 0; moving < 1U << inputs; ++moving)
            for (std::int64_t columns = 1; columns < 70; columns += columns < 36 ? 1 : 11)
                for (const store_policy stores : {store_policy::plain, store_policy::stream}) {
                    trial how{{}, stores, draw(random_, 1, 3), columns};
                    for (std::size_t i = 0; i < inputs; ++i)
                        how.inputs.push_back((moving >> i & 1) != 0 ? column_class::unit
                                                                    : column_class::zero);
                    ASSERT_TRUE(try_expression(random_, what, how, GetParam().target));
                }
    }

    generator random_{base_seed()};
};

TEST_P(expression_nodes, agree_with_double_precision) {
    for (const node& variant : variants(GetParam().kind))
        for (const data_type type : floats) {
            SCOPED_TRACE(to_string(type));
            ASSERT_NO_FATAL_FAILURE(try_all_shapes(alone(variant, type)));
        }
}

TEST_P(expression_nodes, convert_between_types) {
    for (const node& variant : variants(GetParam().kind))
        for (const data_type from : floats)
            for (const data_type to : floats) {
                expression what = alone(variant, from);
                if (GetParam().kind != node_kind::quantize) what.result = to;
                trial how{std::vector(input_count(what), column_class::unit)};
                how.columns = 37;
                ASSERT_TRUE(try_expression(random_, what, how, GetParam().target));
            }
}

TEST_P(expression_nodes, work_in_place) {
    for (const node& variant : variants(GetParam().kind))
        for (const data_type type : floats) {
            const expression what = alone(variant, type);
            if (what.result != type) continue;
            for (std::size_t i = 0; i < input_count(what); ++i) {
                trial how{std::vector(input_count(what), column_class::unit)};
                how.rows = 3;
                how.columns = draw(random_, 1, 60);
                how.in_place = static_cast<int>(i);
                if (what.nodes[i].type != type) continue;
                ASSERT_TRUE(try_expression(random_, what, how, GetParam().target));
            }
        }
}

INSTANTIATE_TEST_SUITE_P(every_kind, expression_nodes, testing::ValuesIn(all_cases()), name_of);

// Every 1,009th f32, whatever it stands for, the ends of the ranges and both zeros among them.
class expression_accuracy : public testing::TestWithParam<node_case> {};

TEST_P(expression_accuracy, stays_within_its_tolerance) {
    const expression what = alone({GetParam().kind}, data_type::f32);
    const column_class moves[] = {column_class::unit};
    const auto code = compile(what, moves, store_policy::plain, GetParam().target);
    std::vector<std::uint32_t> from, to(1 << 16);
    for (std::uint64_t next = 0; next < std::uint64_t{1} << 32; from.clear()) {
        for (; from.size() < to.size() && next < std::uint64_t{1} << 32; next += 1009)
            from.push_back(static_cast<std::uint32_t>(next));
        jit::expression_tile tile{};
        tile.at[0] = reinterpret_cast<std::byte*>(from.data());
        tile.at[jit::dst_operand] = reinterpret_cast<std::byte*>(to.data());
        tile.rows = 1;
        tile.columns = static_cast<std::int64_t>(from.size());
        code->run()(&tile);
        for (std::size_t i = 0; i < from.size(); ++i) {
            const allowed expected = evaluate(what, std::span(&from[i], 1));
            const std::string wrong = complain(expected, to[i], data_type::f32);
            ASSERT_EQ(wrong, "") << decode(from[i], element::f32);
        }
    }
}

std::vector<node_case> approximate_cases() {
    std::vector<node_case> found;
    for (const node_case& each : all_cases())
        if (tolerance_ulps(each.kind) > 0) found.push_back(each);
    return found;
}

INSTANTIATE_TEST_SUITE_P(every_approximation, expression_accuracy,
                         testing::ValuesIn(approximate_cases()), name_of);

} // namespace
} // namespace maskwise::test
