// Random expressions on random elements. MASKWISE_TEST_EXPRESSIONS=<n> tries n of each instruction
// set instead of a few thousand, MASKWISE_TEST_SEED others.

#include "base/error.hpp"
#include "jit/expression_run.hpp"

#include <cstdlib>

namespace maskwise::test {
namespace {

using jit::expression;
using jit::node;
using jit::node_kind;

constexpr node_kind all_kinds[] = {
#define MASKWISE_NODE(name, arguments) node_kind::name,
#include "jit/node_kinds.inc"
#undef MASKWISE_NODE
};

constexpr data_type floats[] = {data_type::f32, data_type::bf16, data_type::f16};

// A valid expression: inputs and constants first, operations on what is there behind, and, where
// dst is to be quantized, that at the end.
class writer {
public:
    explicit writer(generator& random) : random_(random) {}

    expression write() {
        made_.result = floats[draw(random_, 0, 2)];
        const std::int64_t inputs = draw(random_, 1, jit::max_inputs);
        for (std::int64_t i = 0; i < inputs; ++i) add_input();
        if (numbers_.empty()) numbers_.push_back(add({node_kind::constant, none, {}, 0.5F}));
        const std::int64_t operations = draw(random_, 1, one_in(random_, 4) ? 40 : 10);
        for (std::int64_t i = 0; i < operations; ++i)
            add_operation(
                all_kinds[draw(random_, 0, static_cast<std::int64_t>(std::size(all_kinds)) - 1)]);
        add_root();
        return std::move(made_);
    }

private:
    static constexpr std::array<int, 3> none{-1, -1, -1};

    int add(const node& next) { return made_.add(next); }

    // Of dst's type half of the time, so that bits pass.
    void add_input() {
        data_type type = one_in(random_, 2) ? made_.result : floats[draw(random_, 0, 2)];
        if (one_in(random_, 4)) type = data_type::boolean;
        const int number = add({node_kind::input, none, type});
        (type == data_type::boolean ? truths_ : numbers_).push_back(number);
    }

    // Mostly recent values, so that expressions grow deep.
    int pick(const std::vector<int>& from) {
        const auto count = static_cast<std::int64_t>(from.size());
        const std::int64_t first = one_in(random_, 3) ? 0 : std::max<std::int64_t>(0, count - 3);
        return from[static_cast<std::size_t>(draw(random_, first, count - 1))];
    }

    float draw_number() {
        return static_cast<float>(std::normal_distribution<double>(0, 2)(random_));
    }

    void add_operation(node_kind kind) {
        if (kind == node_kind::select && truths_.empty()) kind = node_kind::greater_equal;
        node next{kind, none, {}, draw_number(), draw_number()};
        if (kind == node_kind::type_cast) next.type = floats[draw(random_, 0, 2)];
        if (kind == node_kind::quantize) {
            next.type = one_in(random_, 2) ? data_type::i8 : data_type::u8;
            next.alpha = 0.125F + next.alpha * next.alpha;
            next.beta = static_cast<float>(draw(random_, -20, 140));
        }
        for (std::size_t i = 0; i < argument_count(kind); ++i)
            next.arguments[i] = pick(kind == node_kind::select && i == 0 ? truths_ : numbers_);
        const int number = add(next);
        (kind == node_kind::greater_equal ? truths_ : numbers_).push_back(number);
    }

    void add_root() {
        if (one_in(random_, 2) && !truths_.empty()) add_operation(node_kind::select);
        if (one_in(random_, 5)) {
            add_operation(node_kind::quantize);
            made_.result = made_.nodes.back().type;
        }
        if (made_.nodes.back().kind == node_kind::greater_equal) add_operation(node_kind::add);
    }

    generator& random_;
    expression made_;
    std::vector<int> numbers_, truths_;
};

std::int64_t trials() {
    const char* text = std::getenv("MASKWISE_TEST_EXPRESSIONS");
    return text == nullptr ? 3000 : std::strtoll(text, nullptr, 10);
}

trial draw_trial(generator& random, const expression& what) {
    trial how;
    for (const node& each : what.nodes)
        if (each.kind == node_kind::input)
            how.inputs.push_back(one_in(random, 4) ? column_class::zero : column_class::unit);
    how.stores = one_in(random, 4) ? store_policy::stream : store_policy::plain;
    how.rows = draw(random, 1, 4);
    how.columns = one_in(random, 20) ? draw(random, 100, 300) : draw(random, 1, 50);
    return how;
}

class random_expressions : public testing::TestWithParam<isa> {};

// Expressions that need too many registers are refused; most must not be.
TEST_P(random_expressions, agree_with_double_precision) {
    generator random(base_seed());
    std::int64_t refused = 0;
    for (std::int64_t i = 0; i < trials(); ++i) {
        const expression what = writer(random).write();
        const trial how = draw_trial(random, what);
        try {
            ASSERT_TRUE(try_expression(random, what, how, GetParam())) << "trial " << i;
        } catch (const invalid_argument& refusal) {
            ASSERT_NE(std::string(refusal.what()).find("registers at once"), std::string::npos)
                << refusal.what() << '\n'
                << to_string(what);
            // What the graph merges is this small, so that it never fails to compile.
            ASSERT_GT(what.nodes.size(), 10U) << to_string(what);
            ++refused;
        }
    }
    EXPECT_LT(refused, trials() / 10);
}

INSTANTIATE_TEST_SUITE_P(every_target, random_expressions, testing::ValuesIn(jit_targets()),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

} // namespace
} // namespace maskwise::test
