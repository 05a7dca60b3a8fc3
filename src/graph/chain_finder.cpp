#include "graph/chain_finder.hpp"

#include "graph/causal_mask.hpp"

#include <algorithm>
#include <iterator>

namespace maskwise::graph {
namespace {

// The elementwise operators that a row may pass on its way, before the Select and after it. One
// more takes a line here, its arithmetic in the row kernel, and a test.
struct row_form {
    op_kind kind;
    row_operator op;
    std::size_t inputs;
    bool commutes; // the row may be the second input
};

constexpr row_form row_forms[] = {
    {op_kind::add, row_operator::add, 2, true},
    {op_kind::subtract, row_operator::subtract, 2, false},
    {op_kind::multiply, row_operator::multiply, 2, true},
    {op_kind::divide, row_operator::divide, 2, false},
    {op_kind::tanh, row_operator::tanh, 1, false},
    {op_kind::exp, row_operator::exp, 1, false},
};

const row_form* find_form(op_kind kind) {
    const auto* const found = std::ranges::find(row_forms, kind, &row_form::kind);
    return found == std::end(row_forms) ? nullptr : found;
}

// A value between two operators has the type that the graph gives it.
std::optional<row_step> rounding_to(data_type type) {
    if (type == data_type::bf16) return row_change{row_operator::round_bf16};
    if (type == data_type::f16) return row_change{row_operator::round_f16};
    return std::nullopt;
}

// A chain broadcasts as numpy does; `none` is left to oneDNN, which compares the shapes.
bool broadcasts(const op& op) {
    return !op.auto_broadcast || *op.auto_broadcast == "numpy";
}

class chain_finder {
public:
    explicit chain_finder(const chain_rules& rules) : rules_(rules) {}

    row_chain find(const op& start) {
        start.kind == op_kind::select ? take_select(start) : begin_with_soft_max(start);
        if (!rules_.may_begin_with(chain_.scores))
            throw no_chain{"the scores are used outside the chain, too"};
        grow_down();
        grow_up();
        return std::move(chain_);
    }

private:
    std::size_t add_operand(const logical_tensor& tensor) {
        chain_.operands.push_back(tensor);
        return chain_.operands.size() - 1;
    }

    // An operator may take a step, one that rounds, and an operand; a SoftMax is to find room, too.
    bool is_full() const {
        return chain_.length() + 3 > max_row_actions ||
               chain_.operands.size() + 1 > max_row_operands;
    }

    void take_select(const op& select);
    void begin_with_soft_max(const op& soft_max);
    std::optional<causal_mask> find_causal_mask(const op& select, bool keeps_row) const;
    std::optional<row_step> make_step(const row_form& form, const op& user, std::size_t row);
    void grow_up();
    bool take_above(const op& maker);
    void grow_down();
    bool take_below(const op& user);
    bool take_elementwise(const op& user);
    bool take_soft_max(const op& user);
    bool take_cast(const op& user);
    bool take_quantize(const op& user);

    const chain_rules& rules_;
    row_chain chain_;
};

void chain_finder::take_select(const op& select) {
    const auto row = rules_.row_of(select, 1, 2);
    if (!row) throw no_chain{"not exactly one source of the Select is made in the partition"};
    if (!broadcasts(select)) throw no_chain{"the Select does not broadcast"};
    const bool keeps_row = *row == 1;
    const logical_tensor& side = select.inputs[3 - *row];
    if (auto mask = find_causal_mask(select, keeps_row)) {
        chain_.op_ids = std::move(mask->op_ids);
        chain_.boundary = std::move(mask->boundary);
        chain_.steps.push_back(row_causal_select{add_operand(side)});
    } else {
        const auto op = keeps_row ? row_operator::select_kept : row_operator::select_masked;
        const std::size_t cond = add_operand(select.inputs[0]);
        chain_.steps.push_back(row_select{op, cond, add_operand(side)});
    }
    chain_.op_ids.push_back(select.id);
    chain_.scores = select.inputs[*row].id;
    chain_.result = select.outputs[0].id;
}

void chain_finder::begin_with_soft_max(const op& soft_max) {
    if (!take_soft_max(soft_max)) throw no_chain{"SoftMax works along another axis"};
    chain_.op_ids.push_back(soft_max.id);
    chain_.scores = soft_max.inputs[0].id;
    chain_.result = soft_max.outputs[0].id;
}

// Nothing where cond is an operand like any other.
std::optional<causal_mask> chain_finder::find_causal_mask(const op& select, bool keeps_row) const {
    const std::size_t cond = select.inputs[0].id;
    if (rules_.maker(cond) == nullptr) return std::nullopt;
    try {
        if (!keeps_row)
            throw no_chain{"a mask made in the partition keeps the scores where it is false"};
        return match_causal_mask(select, rules_);
    } catch (const no_chain&) {
        if (!rules_.may_be_operand(cond)) throw;
        return std::nullopt;
    }
}

// The operator as a step of the row, which is this input of it.
std::optional<row_step> chain_finder::make_step(const row_form& form, const op& user,
                                                std::size_t row) {
    if (form.inputs == 1) return row_change{form.op};
    const logical_tensor& side = user.inputs[1 - row];
    if (!broadcasts(user) || (row == 1 && !form.commutes) || !rules_.may_be_operand(side.id))
        return std::nullopt;
    return row_combine{form.op, add_operand(side)};
}

void chain_finder::grow_up() {
    while (!is_full() && rules_.only_reader(chain_.scores) != nullptr) {
        const op* maker = rules_.maker(chain_.scores);
        if (maker == nullptr || !take_above(*maker)) return;
    }
}

bool chain_finder::take_above(const op& maker) {
    const row_form* form = find_form(maker.kind);
    if (form == nullptr || !rules_.may_take(maker)) return false;
    const auto row = rules_.row_of(maker, 0, form->inputs - 1);
    if (!row || !rules_.may_begin_with(maker.inputs[*row].id)) return false;
    const auto step = make_step(*form, maker, *row);
    if (!step) return false;
    if (const auto rounding = rounding_to(maker.outputs[0].type))
        chain_.steps.insert(chain_.steps.begin(), *rounding);
    chain_.steps.insert(chain_.steps.begin(), *step);
    chain_.op_ids.push_back(maker.id);
    chain_.scores = maker.inputs[*row].id;
    return true;
}

void chain_finder::grow_down() {
    while (!chain_.quantize) {
        const op* user = rules_.only_reader(chain_.result);
        if (user == nullptr || !rules_.may_take(*user) || !take_below(*user)) return;
        chain_.op_ids.push_back(user->id);
        chain_.result = user->outputs[0].id;
    }
}

// After SoftMax only the type may change: TypeCast, and Quantize with one scale for all.
bool chain_finder::take_below(const op& user) {
    if (chain_.soft_max && !rules_.may_follow_soft_max(user.inputs[0].type)) return false;
    if (user.kind == op_kind::type_cast) return take_cast(user);
    if (user.kind == op_kind::quantize) return take_quantize(user);
    if (chain_.soft_max) return false;
    return user.kind == op_kind::soft_max ? take_soft_max(user) : take_elementwise(user);
}

bool chain_finder::take_cast(const op& user) {
    if (chain_.soft_max) return true;
    if (is_full()) return false;
    if (const auto rounding = rounding_to(user.outputs[0].type)) chain_.steps.push_back(*rounding);
    return true;
}

bool chain_finder::take_quantize(const op& user) {
    if (!user.constants) return false;
    chain_.quantize = row_quantize{(*user.constants)[0], (*user.constants)[1]};
    return true;
}

// Statistics without a user are not made.
bool chain_finder::take_soft_max(const op& user) {
    if (!works_along(user, 1)) return false;
    const std::string mode = user.mode.value_or("none");
    chain_.soft_max = row_soft_max{mode == "inf_as_zero", mode == "nan_as_zero"};
    if (*user.axis >= 0) chain_.rank = static_cast<int>(*user.axis) + 1;
    if (user.outputs.size() < 2) return true;
    const logical_tensor& statistics = user.outputs[1];
    if (rules_.leaves(statistics.id) || !rules_.values().users(statistics.id).empty())
        chain_.statistics = statistics;
    return true;
}

bool chain_finder::take_elementwise(const op& user) {
    const row_form* form = find_form(user.kind);
    if (form == nullptr || is_full()) return false;
    const std::size_t row = user.inputs[0].id == chain_.result ? 0 : 1;
    if (form->inputs == 2 &&
        (user.inputs[1 - row].id == chain_.result || !rules_.row_of(user, row, row)))
        return false;
    const auto step = make_step(*form, user, row);
    if (!step) return false;
    chain_.steps.push_back(*step);
    if (const auto rounding = rounding_to(user.outputs[0].type)) chain_.steps.push_back(*rounding);
    return true;
}

} // namespace

row_chain find_chain(const op& start, const chain_rules& rules) {
    return chain_finder(rules).find(start);
}

} // namespace maskwise::graph
