#include "graph/row_chain.hpp"

#include "graph/chain_finder.hpp"

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
    const auto* const found =
        std::find_if(std::begin(row_forms), std::end(row_forms),
                     [kind](const row_form& form) { return form.kind == kind; });
    return found == std::end(row_forms) ? nullptr : found;
}

// What is kept between two operators has the type that the graph gives it.
std::optional<row_step> rounding_to(data_type type) {
    row_step step;
    step.op = type == data_type::bf16 ? row_operator::round_bf16 : row_operator::round_f16;
    if (type == data_type::bf16 || type == data_type::f16) return step;
    return std::nullopt;
}

// A chain broadcasts as numpy does; `none` is left to oneDNN, which compares the shapes.
bool broadcasts(const op& op) {
    return !op.auto_broadcast || *op.auto_broadcast == "numpy";
}

constexpr std::size_t no_row = SIZE_MAX;

bool same_known_shape(const logical_tensor& a, const logical_tensor& b) {
    return a.shape_known() && b.shape_known() && a.extents == b.extents;
}

} // namespace

bool is_axis(const op& op, int from_end) {
    const int rank = op.inputs[0].extents.rank();
    return op.axis && (*op.axis == -from_end || *op.axis == rank - from_end);
}

chain_finder::chain_finder(std::span<const op> partition,
                           const std::vector<std::size_t>& output_ids)
    : output_ids_(&output_ids) {
    add_ops(partition);
}

chain_finder::chain_finder(std::span<const op> graph,
                           const std::function<bool(std::size_t)>& stands_alone)
    : stands_alone_(&stands_alone) {
    add_ops(graph);
}

void chain_finder::add_ops(std::span<const op> ops) {
    for (const op& each : ops) {
        for (const auto& input : each.inputs) users_[input.id].push_back(&each);
        if (!may_take(each)) continue;
        for (const auto& output : each.outputs) producers_[output.id] = &each;
    }
}

const op* chain_finder::producer(std::size_t id) const {
    const auto found = producers_.find(id);
    return found == producers_.end() ? nullptr : found->second;
}

// What nobody uses leaves a graph.
bool chain_finder::is_output(std::size_t id) const {
    if (!is_partition()) return !users_.contains(id);
    return std::find(output_ids_->begin(), output_ids_->end(), id) != output_ids_->end();
}

// GenIndex reads a tensor's shape only: it does not count as a user of its values.
const op* chain_finder::only_user(std::size_t id) const {
    if (is_output(id)) return nullptr;
    const op* only = nullptr;
    const auto found = users_.find(id);
    if (found == users_.end()) return nullptr;
    for (const op* user : found->second) {
        if (user->kind == op_kind::gen_index) continue;
        if (only != nullptr) return nullptr;
        only = user;
    }
    return only;
}

int chain_finder::add_operand(const logical_tensor& tensor) {
    chain_.operands.push_back(tensor);
    return static_cast<int>(chain_.operands.size()) - 1;
}

// Which of the two inputs is the row: `no_row` where that cannot be told.
std::size_t chain_finder::row_of(const op& user, std::size_t a, std::size_t b) const {
    const auto may_be = [&](std::size_t i) {
        const logical_tensor& input = user.inputs[i];
        if (is_partition()) return producer(input.id) != nullptr;
        return same_known_shape(input, user.outputs[0]);
    };
    if (may_be(a) && (a == b || !may_be(b))) return a;
    if (!may_be(a)) return may_be(b) ? b : no_row;
    if (is_partition()) return no_row;
    return producer(user.inputs[a].id) == nullptr && producer(user.inputs[b].id) != nullptr ? b : a;
}

void chain_finder::take_select(const op& select) {
    const std::size_t row = row_of(select, 1, 2);
    if (row == no_row)
        throw no_chain{is_partition()
                           ? "not exactly one source of the Select is made in the partition"
                           : "no source of the Select has the result's shape"};
    if (!broadcasts(select)) throw no_chain{"the Select does not broadcast"};
    row_step step;
    step.op = row == 1 ? row_operator::select_kept : row_operator::select_masked;
    if (try_causal_mask(select, step.op))
        step.kind = row_step_kind::select_causal;
    else
        step.cond = add_operand(select.inputs[0]);
    step.operand = add_operand(select.inputs[3 - row]);
    chain_.steps.push_back(step);
    chain_.op_ids.push_back(select.id);
    chain_.scores = select.inputs[row].id;
    chain_.result = select.outputs[0].id;
}

// Takes the operator that makes the chain's first value, if it changes rows by an operand. Inside a
// partition rows are run in place, so its input must be the chain's alone.
bool chain_finder::take_above(const op& maker) {
    const row_form* form = find_form(maker.kind);
    if (form == nullptr || !broadcasts(maker) || !may_take(maker)) return false;
    const std::size_t row = row_of(maker, 0, form->inputs - 1);
    if (row == no_row || (row == 1 && !form->commutes)) return false;
    const logical_tensor& input = maker.inputs[row];
    if (is_partition() && only_user(input.id) == nullptr) return false;
    if (form->inputs == 2 && is_made_beside(maker.inputs[1 - row].id)) return false;
    row_step step;
    step.op = form->op;
    if (form->inputs == 2) step.operand = add_operand(maker.inputs[1 - row]);
    if (const auto rounding = rounding_to(maker.outputs[0].type))
        chain_.steps.insert(chain_.steps.begin(), *rounding);
    chain_.steps.insert(chain_.steps.begin(), step);
    chain_.op_ids.push_back(maker.id);
    chain_.scores = input.id;
    return true;
}

// An operator may take a step, one that rounds, and an operand; a SoftMax is to find room, too.
bool chain_finder::is_full() const {
    return chain_.steps.size() + 3 > max_row_actions ||
           chain_.operands.size() + 1 > max_row_operands;
}

void chain_finder::grow_up() {
    while (!is_full() && only_user(chain_.scores) != nullptr) {
        const op* maker = producer(chain_.scores);
        if (maker == nullptr || !take_above(*maker)) return;
    }
}

void chain_finder::add_rounding(const op& user) {
    if (const auto rounding = rounding_to(user.outputs[0].type)) chain_.steps.push_back(*rounding);
}

bool chain_finder::take_elementwise(const op& user) {
    const row_form& form = *find_form(user.kind);
    const std::size_t row = user.inputs[0].id == chain_.result ? 0 : 1;
    row_step step;
    step.op = form.op;
    if (form.inputs == 2) {
        const logical_tensor& other = user.inputs[1 - row];
        if (!broadcasts(user) || other.id == chain_.result || is_made_beside(other.id))
            return false;
        if (row == 1 && !form.commutes) return false;
        if (!is_partition() && !same_known_shape(user.inputs[row], user.outputs[0])) return false;
        step.operand = add_operand(other);
    }
    chain_.steps.push_back(step);
    add_rounding(user);
    return true;
}

// Statistics that nobody asks for are not made.
bool chain_finder::take_soft_max(const op& user) {
    if (!is_axis(user, 1)) return false;
    row_step step;
    step.kind = row_step_kind::soft_max;
    step.inf_as_zero = user.mode && *user.mode == "inf_as_zero";
    chain_.steps.push_back(step);
    if (user.outputs.size() > 1 && is_used(user.outputs[1].id)) chain_.statistics = user.outputs[1];
    return true;
}

// After SoftMax only the type may change: TypeCast, and Quantize with one scale for all. Inside a
// partition they take its result as it is, not rounded to the type in between; where each stands
// alone, what it hands over is what its tensor can hold.
bool chain_finder::take_below(const op& user) {
    const bool has_soft_max = chain_.steps.back().kind == row_step_kind::soft_max;
    if (has_soft_max && !is_partition() && rounding_to(user.inputs[0].type)) return false;
    const row_form* form = find_form(user.kind);
    bool taken = false;
    if (user.kind == op_kind::type_cast) {
        taken = has_soft_max || !is_full();
        if (taken && !has_soft_max) add_rounding(user);
    } else if (user.kind == op_kind::quantize && user.numbers) {
        taken = true;
        chain_.quantized = user.numbers;
    } else if (user.kind == op_kind::soft_max && !has_soft_max) {
        taken = take_soft_max(user);
    } else if (form != nullptr && !has_soft_max && !is_full()) {
        taken = take_elementwise(user);
    }
    if (!taken) return false;
    chain_.op_ids.push_back(user.id);
    chain_.result = user.outputs[0].id;
    return true;
}

void chain_finder::grow_down() {
    while (!chain_.quantized) {
        const op* user = only_user(chain_.result);
        if (user == nullptr || !may_take(*user) || !take_below(*user)) return;
    }
}

row_chain chain_finder::find(const op& select) {
    chain_ = {};
    take_select(select);
    if (is_partition() && only_user(chain_.scores) == nullptr)
        throw no_chain{"the scores are used outside the chain, too"};
    grow_down();
    grow_up();
    return std::move(chain_);
}

std::optional<row_chain> find_row_chain(const std::vector<op>& ops,
                                        const std::vector<std::size_t>& output_ids,
                                        std::string& reason) {
    std::vector<const op*> selects;
    for (const op& each : ops)
        if (each.kind == op_kind::select) selects.push_back(&each);
    if (selects.size() != 1) {
        reason = std::to_string(selects.size()) + " Selects in one partition";
        return std::nullopt;
    }
    try {
        return chain_finder(ops, output_ids).find(*selects.front());
    } catch (const no_chain& none) {
        reason = none.reason;
    }
    return std::nullopt;
}

} // namespace maskwise::graph
