#include "fusion/chain_finder.hpp"

#include "fusion/causal_mask.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace maskwise::fusion {
namespace {

// An element-wise operator of the graph, and the row operator that computes it.
struct row_form {
    op_kind kind;
    row_operator op;
    std::size_t inputs;
    row_operator reversed_operands; // if the row is the second input
    bool has_constant;
};

constexpr row_form row_forms[] = {
#define MASKWISE_ROW_BINARY(name, reversed_operands, ...)                                          \
    {op_kind::name, row_operator::name, 2, row_operator::reversed_operands, false},
#define MASKWISE_ROW_UNARY(name, onednn, onnx, attribute)                                          \
    {op_kind::name, row_operator::name, 1, row_operator::name,                                     \
     std::string_view(#attribute) != "none"},
#include "kernel/rows/operators.inc"
};

const row_form* find_form(op_kind kind) {
    const auto* const form = std::ranges::find(row_forms, kind, &row_form::kind);
    return form == std::end(row_forms) ? nullptr : form;
}

// The inputs, from `first` to `last`, that may be the row.
struct row_inputs {
    std::size_t first, last;
};

// nullopt if the operator cannot be in a row chain.
std::optional<row_inputs> row_inputs_of(const op& op) {
    const row_form* form = find_form(op.kind);
    const bool is_select = op.kind == op_kind::select;
    const bool is_cast = op.kind == op_kind::type_cast;
    const std::size_t inputs = form != nullptr ? form->inputs : is_select ? 3 : is_cast ? 1 : 0;
    if (inputs == 0 || op.inputs.size() != inputs || op.outputs.size() != 1) return std::nullopt;
    return row_inputs{is_select ? 1U : 0U, inputs - 1};
}

// The step that rounds to the type of the operator's result. nullopt for f32, and for a Select,
// which copies values.
std::optional<row_step> rounding_of(const op& maker) {
    const data_type type = maker.outputs[0].type;
    if (maker.kind == op_kind::select) return std::nullopt;
    if (type == data_type::bf16) return row_change{row_operator::round_bf16};
    if (type == data_type::f16) return row_change{row_operator::round_f16};
    return std::nullopt;
}

// Chains broadcast by NumPy's rule. An operator with auto_broadcast `none` stays in oneDNN, because
// only oneDNN checks that the operator's shapes are equal.
bool broadcasts(const op& op) {
    return !op.auto_broadcast || *op.auto_broadcast == "numpy";
}

class chain_finder {
public:
    explicit chain_finder(const match_policy& policy) : policy_(policy) {}

    row_chain find(const op& start) {
        if (start.kind == op_kind::select)
            take_select(start);
        else if (start.kind == op_kind::soft_max)
            begin_with_soft_max(start);
        else
            begin_with_elementwise(start);
        if (!policy_.may_begin_with(chain_.scores))
            throw no_chain{"the scores have readers outside the chain"};
        grow_down();
        grow_up();
        return std::move(chain_);
    }

private:
    std::size_t add_operand(const logical_tensor& tensor) {
        chain_.operands.push_back(tensor);
        return chain_.operands.size() - 1;
    }

    // Whether the chain lacks room for three steps (an operator, its rounding and a SoftMax) or for
    // one operand.
    bool is_full() const { return chain_.steps.size() + 3 > max_row_actions || !has_room(1); }
    bool has_room(std::size_t operands) const {
        return chain_.operands.size() + operands <= max_row_operands;
    }

    void take_select(const op& select);
    void begin_with_soft_max(const op& soft_max);
    void begin_with_elementwise(const op& start);
    bool take_mask(const op& select, bool row_if_true);
    bool may_take_select(const op& select, std::size_t row) const;
    row_step make_select(const op& select, std::size_t row);
    std::optional<row_step> make_step(const op& user, std::size_t row);
    void grow_up();
    bool take_above(const op& maker);
    void grow_down();
    bool take_below(const op& user);
    bool take_elementwise(const op& user);
    bool take_soft_max(const op& user);
    bool take_cast(const op& user);
    bool take_quantize(const op& user);

    const match_policy& policy_;
    row_chain chain_;
};

void chain_finder::take_select(const op& select) {
    const auto row = policy_.row_of(select, 1, 2);
    if (!row) throw no_chain{"it is ambiguous which source of the Select is the scores"};
    if (!broadcasts(select)) throw no_chain{"the Select's auto_broadcast is not numpy"};
    const bool is_causal = take_mask(select, *row == 1);
    chain_.steps.push_back(is_causal ? causal_select(add_operand(select.inputs[2]))
                                     : make_select(select, *row));
    chain_.op_ids.push_back(select.id);
    chain_.scores = select.inputs[*row].id;
    chain_.result = select.outputs[0].id;
}

void chain_finder::begin_with_soft_max(const op& soft_max) {
    if (!take_soft_max(soft_max)) throw no_chain{"SoftMax does not work along the last axis"};
    chain_.op_ids.push_back(soft_max.id);
    chain_.scores = soft_max.inputs[0].id;
    chain_.result = soft_max.outputs[0].id;
}

void chain_finder::begin_with_elementwise(const op& start) {
    const auto inputs = row_inputs_of(start);
    const auto row = inputs ? policy_.row_of(start, inputs->first, inputs->last) : std::nullopt;
    if (!row) throw no_chain{"it is ambiguous which input is the row"};
    chain_.scores = chain_.result = start.inputs[*row].id;
    if (!take_elementwise(start)) throw no_chain{"rows do not support the operator"};
    chain_.op_ids.push_back(start.id);
    chain_.result = start.outputs[0].id;
}

// Adds the operators of a causal mask to the chain. Returns false and leaves the chain unchanged if
// cond is an operand. Throws no_chain if cond is neither a causal mask nor an operand.
bool chain_finder::take_mask(const op& select, bool row_if_true) {
    const std::size_t cond = select.inputs[0].id;
    if (policy_.maker(cond) == nullptr) return false;
    try {
        if (!row_if_true)
            throw no_chain{"a mask computed in the partition selects the scores where it is false"};
        take_causal_mask(select, policy_, chain_);
        return true;
    } catch (const no_chain&) {
        if (!policy_.may_be_operand(cond)) throw;
        chain_.op_ids.clear();
        chain_.causal_offset.clear();
        return false;
    }
}

row_step chain_finder::make_select(const op& select, std::size_t row) {
    const auto op = row == 1 ? row_operator::select_kept : row_operator::select_masked;
    const std::size_t cond = add_operand(select.inputs[0]);
    return row_select{op, cond, add_operand(select.inputs[3 - row])};
}

bool chain_finder::may_take_select(const op& select, std::size_t row) const {
    return row > 0 && broadcasts(select) && has_room(2) &&
           policy_.may_be_operand(select.inputs[0].id) &&
           policy_.may_be_operand(select.inputs[3 - row].id);
}

// The operator as a step; nullopt if the operator cannot be a step. Input `row` is the row.
std::optional<row_step> chain_finder::make_step(const op& user, std::size_t row) {
    if (user.kind == op_kind::select)
        return may_take_select(user, row) ? std::optional(make_select(user, row)) : std::nullopt;
    const row_form* form = find_form(user.kind);
    if (form == nullptr || (form->has_constant && !user.constants)) return std::nullopt;
    if (form->inputs == 1)
        return row_change{form->op, form->has_constant ? user.constants->front() : 0};
    const row_operator op = row == 0 ? form->op : form->reversed_operands;
    const logical_tensor& side = user.inputs[1 - row];
    if (!broadcasts(user) || !policy_.may_be_operand(side.id)) return std::nullopt;
    return row_combine{op, add_operand(side)};
}

void chain_finder::grow_up() {
    while (!is_full() && policy_.only_reader(chain_.scores) != nullptr) {
        const op* maker = policy_.maker(chain_.scores);
        if (maker == nullptr || !take_above(*maker)) return;
    }
}

bool chain_finder::take_above(const op& maker) {
    const auto inputs = row_inputs_of(maker);
    if (!inputs || !policy_.may_take(maker)) return false;
    const bool is_cast = maker.kind == op_kind::type_cast && policy_.may_begin_with_cast();
    const auto row = policy_.row_of(maker, inputs->first, inputs->last);
    if (!row || !policy_.may_begin_with(maker.inputs[*row].id)) return false;
    const auto step = is_cast ? std::nullopt : make_step(maker, *row);
    if (!step && !is_cast) return false;
    if (const auto rounding = rounding_of(maker))
        chain_.steps.insert(chain_.steps.begin(), *rounding);
    if (step) chain_.steps.insert(chain_.steps.begin(), *step);
    chain_.op_ids.push_back(maker.id);
    chain_.scores = maker.inputs[*row].id;
    return true;
}

void chain_finder::grow_down() {
    while (!chain_.quantize) {
        const op* user = policy_.only_reader(chain_.result);
        if (user == nullptr || !policy_.may_take(*user) || !take_below(*user)) return;
        chain_.op_ids.push_back(user->id);
        chain_.result = user->outputs[0].id;
    }
}

// Only two operators may follow SoftMax: TypeCast, and Quantize with one scale for all elements.
bool chain_finder::take_below(const op& user) {
    if (chain_.soft_max && !policy_.may_follow_soft_max(user.inputs[0].type)) return false;
    if (user.kind == op_kind::type_cast) return take_cast(user);
    if (user.kind == op_kind::quantize) return take_quantize(user);
    if (chain_.soft_max) return false;
    return user.kind == op_kind::soft_max ? take_soft_max(user) : take_elementwise(user);
}

bool chain_finder::take_cast(const op& user) {
    if (chain_.soft_max) return true;
    if (is_full()) return false;
    if (const auto rounding = rounding_of(user)) chain_.steps.push_back(*rounding);
    return true;
}

bool chain_finder::take_quantize(const op& user) {
    if (!user.constants) return false;
    chain_.quantize = row_quantize{(*user.constants)[0], (*user.constants)[1]};
    return true;
}

// Statistics that nothing reads are not computed.
bool chain_finder::take_soft_max(const op& user) {
    if (!works_along(user, 1)) return false;
    const std::string mode = user.mode.value_or("none");
    chain_.soft_max = row_soft_max{mode == "inf_as_zero", mode == "nan_as_zero"};
    if (*user.axis >= 0) chain_.rank = static_cast<int>(*user.axis) + 1;
    if (user.outputs.size() < 2) return true;
    const logical_tensor& statistics = user.outputs[1];
    if (policy_.leaves(statistics.id) || !policy_.values().users(statistics.id).empty())
        chain_.statistics = statistics;
    return true;
}

bool chain_finder::take_elementwise(const op& user) {
    const auto input = std::ranges::find(user.inputs, chain_.result, &logical_tensor::id);
    const auto row = static_cast<std::size_t>(input - user.inputs.begin());
    if (is_full() || !row_inputs_of(user) || !policy_.row_of(user, row, row)) return false;
    const auto step = make_step(user, row);
    if (!step) return false;
    chain_.steps.push_back(*step);
    if (const auto rounding = rounding_of(user)) chain_.steps.push_back(*rounding);
    return true;
}

} // namespace

row_chain find_chain(const op& start, const match_policy& policy) {
    return chain_finder(policy).find(start);
}

} // namespace maskwise::fusion
