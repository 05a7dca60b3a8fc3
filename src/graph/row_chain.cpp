#include "graph/row_chain.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace maskwise::graph {
namespace {

// Why a partition is not a chain; caught in find_row_chain.
struct no_chain {
    std::string reason;
};

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

bool is_axis(const op& op, int from_end) {
    const int rank = op.inputs[0].extents.rank();
    return op.axis && (*op.axis == -from_end || *op.axis == rank - from_end);
}

// A chain broadcasts as numpy does; `none` is left to oneDNN, which compares the shapes.
bool broadcasts(const op& op) {
    return !op.auto_broadcast || *op.auto_broadcast == "numpy";
}

// The last two extents agree and are known: an index counts the scores' own rows and columns.
bool has_matrix_of(const logical_tensor& a, const logical_tensor& b) {
    const int rank_a = a.extents.rank(), rank_b = b.extents.rank();
    if (!a.shape_known() || !b.shape_known() || rank_a < 2 || rank_b < 2) return false;
    return a.extents[rank_a - 1] == b.extents[rank_b - 1] &&
           a.extents[rank_a - 2] == b.extents[rank_b - 2];
}

class chain_finder {
public:
    chain_finder(const std::vector<op>& ops, const std::vector<std::size_t>& output_ids)
        : output_ids_(output_ids) {
        for (const op& each : ops) {
            if (each.kind == op_kind::select) selects_.push_back(&each);
            for (const auto& output : each.outputs) producers_[output.id] = &each;
            for (const auto& input : each.inputs) users_[input.id].push_back(&each);
        }
    }

    row_chain find();

private:
    const op* producer(std::size_t id) const {
        const auto found = producers_.find(id);
        return found == producers_.end() ? nullptr : found->second;
    }
    const op* only_user(std::size_t id) const;
    bool is_used(std::size_t id) const { return is_output(id) || users_.contains(id); }
    bool is_output(std::size_t id) const {
        return std::find(output_ids_.begin(), output_ids_.end(), id) != output_ids_.end();
    }
    bool is_private(std::size_t id, const op& user) const;
    int add_operand(const logical_tensor& tensor);
    void take_select(const op& select);
    void take_causal_mask(const op& select, row_step& step);
    void take_boundary(const logical_tensor& row_index, const logical_tensor& scores);
    void add_rounding(const op& user);
    void grow_up();
    void grow_down();
    bool take_above(const op& maker);
    bool take_below(const op& user);
    bool take_elementwise(const op& user, const row_form& form);
    bool take_soft_max(const op& user);

    const std::vector<std::size_t>& output_ids_;
    std::vector<const op*> selects_;
    std::map<std::size_t, const op*> producers_;
    std::map<std::size_t, std::vector<const op*>> users_;
    row_chain chain_;
};

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

bool chain_finder::is_private(std::size_t id, const op& user) const {
    return only_user(id) == &user;
}

int chain_finder::add_operand(const logical_tensor& tensor) {
    chain_.operands.push_back(tensor);
    return static_cast<int>(chain_.operands.size()) - 1;
}

void chain_finder::take_boundary(const logical_tensor& row_index, const logical_tensor& scores) {
    std::size_t id = row_index.id;
    for (const op* maker = producer(id);; maker = producer(id)) {
        if (maker == nullptr) throw no_chain{"the mask's row index comes from outside"};
        chain_.op_ids.push_back(maker->id);
        if (maker->kind == op_kind::gen_index) {
            if (!is_axis(*maker, 2) || !has_matrix_of(maker->inputs[0], scores))
                throw no_chain{"the mask's first index is not the row's"};
            return;
        }
        const bool moves = maker->kind == op_kind::add || maker->kind == op_kind::subtract;
        if (!moves || maker->inputs[1].extents.rank() > 1 || only_user(id) == nullptr)
            throw no_chain{"the mask's row index is made by other operators"};
        chain_.boundary.push_back({maker->inputs[1], maker->kind == op_kind::subtract});
        id = maker->inputs[0].id;
    }
}

// GenIndex(row) [+ a - b] >= GenIndex(column): row i keeps the columns up to i + a - b.
void chain_finder::take_causal_mask(const op& select, row_step& step) {
    const std::size_t cond = select.inputs[0].id;
    const op* compare = producer(cond);
    if (compare->kind != op_kind::greater_equal || !is_private(cond, select))
        throw no_chain{"the mask is made by operators other than GenIndex and GreaterEqual"};
    chain_.op_ids.push_back(compare->id);
    const op* column = producer(compare->inputs[1].id);
    const logical_tensor& scores = select.inputs[1];
    if (column == nullptr || column->kind != op_kind::gen_index || !is_axis(*column, 1) ||
        !has_matrix_of(column->inputs[0], scores) || !is_private(compare->inputs[1].id, *compare) ||
        !is_private(compare->inputs[0].id, *compare))
        throw no_chain{"the mask does not compare a row with a column index"};
    chain_.op_ids.push_back(column->id);
    take_boundary(compare->inputs[0], scores);
    step.kind = row_step_kind::select_causal;
}

void chain_finder::take_select(const op& select) {
    const bool scores_on_src_0 = producer(select.inputs[1].id) != nullptr;
    const bool scores_on_src_1 = producer(select.inputs[2].id) != nullptr;
    if (scores_on_src_0 == scores_on_src_1)
        throw no_chain{"not exactly one source of the Select is made in the partition"};
    if (!broadcasts(select)) throw no_chain{"the Select does not broadcast"};
    row_step step;
    step.op = scores_on_src_0 ? row_operator::select_kept : row_operator::select_masked;
    if (producer(select.inputs[0].id) == nullptr)
        step.cond = add_operand(select.inputs[0]);
    else if (scores_on_src_0)
        take_causal_mask(select, step);
    else
        throw no_chain{"a mask made in the partition keeps the scores where it is false"};
    step.operand = add_operand(select.inputs[scores_on_src_0 ? 2 : 1]);
    chain_.steps.push_back(step);
    chain_.op_ids.push_back(select.id);
    chain_.scores = select.inputs[scores_on_src_0 ? 1 : 2].id;
    chain_.result = select.outputs[0].id;
}

// Takes the operator that makes the chain's first value, if it changes rows by an operand.
bool chain_finder::take_above(const op& maker) {
    const row_form* form = find_form(maker.kind);
    if (form == nullptr || !broadcasts(maker) || only_user(chain_.scores) == nullptr) return false;
    std::size_t row = 0;
    if (form->commutes && producer(maker.inputs[0].id) == nullptr) row = 1;
    if (only_user(maker.inputs[row].id) == nullptr) return false; // rows are run in place
    if (producer(maker.inputs[row].id) == nullptr) return false;
    if (form->inputs == 2 && producer(maker.inputs[1 - row].id) != nullptr) return false;
    row_step step;
    step.op = form->op;
    if (form->inputs == 2) step.operand = add_operand(maker.inputs[1 - row]);
    if (const auto rounding = rounding_to(maker.outputs[0].type))
        chain_.steps.insert(chain_.steps.begin(), *rounding);
    chain_.steps.insert(chain_.steps.begin(), step);
    chain_.op_ids.push_back(maker.id);
    chain_.scores = maker.inputs[row].id;
    return true;
}

void chain_finder::grow_up() {
    for (const op* maker = producer(chain_.scores); maker != nullptr && take_above(*maker);)
        maker = producer(chain_.scores);
}

void chain_finder::add_rounding(const op& user) {
    if (const auto rounding = rounding_to(user.outputs[0].type)) chain_.steps.push_back(*rounding);
}

bool chain_finder::take_elementwise(const op& user, const row_form& form) {
    const std::size_t row = user.inputs[0].id == chain_.result ? 0 : 1;
    row_step step;
    step.op = form.op;
    if (form.inputs == 2) {
        const logical_tensor& other = user.inputs[1 - row];
        if (!broadcasts(user) || other.id == chain_.result || producer(other.id) != nullptr)
            return false;
        if (row == 1 && !form.commutes) return false;
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

// After SoftMax only the type may change: TypeCast, and Quantize with one scale for all.
bool chain_finder::take_below(const op& user) {
    const bool has_soft_max = chain_.steps.back().kind == row_step_kind::soft_max;
    const row_form* form = find_form(user.kind);
    bool taken = false;
    if (user.kind == op_kind::type_cast) {
        taken = true;
        if (!has_soft_max) add_rounding(user);
    } else if (user.kind == op_kind::quantize && user.numbers) {
        taken = true;
        chain_.quantized = user.numbers;
    } else if (user.kind == op_kind::soft_max && !has_soft_max) {
        taken = take_soft_max(user);
    } else if (form != nullptr && !has_soft_max) {
        taken = take_elementwise(user, *form);
    }
    if (!taken) return false;
    chain_.op_ids.push_back(user.id);
    chain_.result = user.outputs[0].id;
    return true;
}

void chain_finder::grow_down() {
    while (!chain_.quantized) {
        const op* user = only_user(chain_.result);
        if (user == nullptr || !take_below(*user)) return;
    }
}

row_chain chain_finder::find() {
    if (selects_.size() != 1)
        throw no_chain{std::to_string(selects_.size()) + " Selects in one partition"};
    take_select(*selects_.front());
    if (only_user(chain_.scores) == nullptr)
        throw no_chain{"the scores are used outside the chain, too"};
    grow_up();
    grow_down();
    return std::move(chain_);
}

} // namespace

std::optional<row_chain> find_row_chain(const std::vector<op>& ops,
                                        const std::vector<std::size_t>& output_ids,
                                        std::string& reason) {
    try {
        return chain_finder(ops, output_ids).find();
    } catch (const no_chain& none) {
        reason = none.reason;
    }
    return std::nullopt;
}

} // namespace maskwise::graph
