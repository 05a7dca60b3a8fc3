#include "jit/random_expression.hpp"

#include <array>
#include <utility>
#include <vector>

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

} // namespace

expression draw_expression(generator& random) {
    return writer(random).write();
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

} // namespace maskwise::test
