#include "graph/expression_group.hpp"

#include "base/error.hpp"
#include "graph/graph_index.hpp"
#include "tensor/data_type.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace maskwise::graph {
namespace {

// Where an operator may stand next to a Select, or to operators that have been merged with one.
enum place : unsigned { makes_cond = 1, makes_source = 2, uses_result = 4 };

struct merge_rule {
    op_kind kind;
    unsigned places;
};

// The patterns: which neighbours are merged.
constexpr merge_rule rules[] = {
    {op_kind::greater_equal, makes_cond},
    {op_kind::select, makes_source | uses_result},
    {op_kind::add, makes_source | uses_result},
    {op_kind::subtract, makes_source | uses_result},
    {op_kind::multiply, makes_source | uses_result},
    {op_kind::divide, makes_source | uses_result},
    {op_kind::maximum, makes_source | uses_result},
    {op_kind::minimum, makes_source | uses_result},
    {op_kind::abs, makes_source | uses_result},
    {op_kind::square, makes_source | uses_result},
    {op_kind::sqrt, makes_source | uses_result},
    {op_kind::exp, makes_source | uses_result},
    {op_kind::tanh, makes_source | uses_result},
    {op_kind::sigmoid, makes_source | uses_result},
    {op_kind::relu, makes_source | uses_result},
    {op_kind::leaky_relu, makes_source | uses_result},
    {op_kind::clamp, makes_source | uses_result},
    {op_kind::type_cast, makes_source | uses_result},
    {op_kind::quantize, uses_result},
};

// So many values fit the registers of AVX2 at once next to the registers that operators need for
// themselves, whatever the operators and their broadcasts: a group never fails to compile.
// Rounding reuses its input's register and is not counted, so grouping does not depend on the
// types.
constexpr std::size_t most_values = 10;

bool allows(op_kind kind, place where) {
    return std::ranges::any_of(rules, [&](const merge_rule& rule) {
        return rule.kind == kind && (rule.places & where) != 0;
    });
}

bool has_constants(op_kind kind) {
    return kind == op_kind::leaky_relu || kind == op_kind::clamp || kind == op_kind::quantize;
}

std::optional<jit::node_kind> node_kind_of(op_kind kind) {
    switch (kind) {
#define MASKWISE_NODE(name, arguments)                                                             \
    case op_kind::name:                                                                            \
        return jit::node_kind::name;
#include "jit/node_kinds.inc"
#undef MASKWISE_NODE
    default:
        return std::nullopt;
    }
}

jit::node_kind node_kind_of(const op& op) {
    const auto kind = node_kind_of(op.kind);
    if (!kind || op.inputs.size() != jit::argument_count(*kind) || op.outputs.size() != 1)
        throw invalid_argument("an operator with other operands");
    if (has_constants(op.kind) && !op.constants) throw invalid_argument("other attributes");
    return *kind;
}

// A tree as an expression. Throws invalid_argument where it is none that can be compiled.
class tree_writer {
public:
    explicit tree_writer(expression_group& group) : group_(group) {}

    void write() {
        group_.expression.result = group_.ops.back().outputs[0].type;
        for (const op& op : group_.ops)
            for (const auto& output : op.outputs) inner_.insert(output.id);
        for (const op& op : group_.ops) add_inputs(op);
        for (const op& op : group_.ops) add_op(op);
        jit::validate(group_.expression);
        if (group_.expression.nodes.size() > most_values + roundings_)
            throw invalid_argument("too many values");
    }

private:
    void add_inputs(const op& op) {
        for (const auto& input : op.inputs) {
            if (inner_.contains(input.id) || nodes_.contains(input.id)) continue;
            nodes_[input.id] =
                group_.expression.add({jit::node_kind::input, {-1, -1, -1}, input.type});
            group_.inputs.push_back(input);
        }
    }

    void add_op(const op& op) {
        const jit::node_kind kind = node_kind_of(op);
        jit::node next{kind};
        const logical_tensor& output = op.outputs[0];
        if (kind == jit::node_kind::type_cast || kind == jit::node_kind::quantize)
            next.type = output.type;
        if (op.constants) next.alpha = (*op.constants)[0], next.beta = (*op.constants)[1];
        std::ranges::transform(op.inputs, next.arguments.begin(),
                               [&](const logical_tensor& input) { return nodes_.at(input.id); });
        nodes_[output.id] = rounded(group_.expression.add(next), op);
    }

    // Between operators values have their tensors' types, as they would in memory.
    int rounded(int value, const op& maker) {
        const data_type type = maker.outputs[0].type;
        const bool is_exact = maker.kind == op_kind::select || maker.kind == op_kind::type_cast;
        if (is_exact || !is_16_bit_float(type) || &maker == &group_.ops.back()) return value;
        ++roundings_;
        return group_.expression.add({jit::node_kind::type_cast, {value, -1, -1}, type});
    }

    expression_group& group_;
    std::set<std::size_t> inner_;
    std::map<std::size_t, int> nodes_; // by tensor
    std::size_t roundings_ = 0;        // nodes that no operator stands for
};

using op_list = std::vector<const op*>;

std::optional<expression_group> try_group(const op_list& members) {
    expression_group group;
    for (const op* member : members) group.ops.push_back(*member);
    try {
        tree_writer(group).write();
    } catch (const invalid_argument&) {
        return std::nullopt;
    }
    return group;
}

bool is_cond(const op& user, const logical_tensor& input) {
    return user.kind == op_kind::select && &input == user.inputs.data();
}

class group_finder {
public:
    group_finder(std::span<const op> graph, const op_filter& stands_alone)
        : graph_(graph), values_(graph, stands_alone), stands_alone_(stands_alone) {}

    std::vector<expression_group> find() {
        for (const op& op : graph_)
            if (op.kind == op_kind::select && is_free(op)) grow(op);
        return std::move(groups_);
    }

private:
    bool is_free(const op& op) const { return !taken_.contains(op.id) && stands_alone_(op.id); }

    void grow(const op& select) {
        members_ = {&select};
        if (!try_group(members_)) return;
        for (bool has_grown = true; has_grown;) {
            has_grown = grow_up();
            has_grown = grow_down() || has_grown;
        }
        if (members_.size() < 2) return;
        groups_.push_back(*try_group(members_));
        for (const op* member : members_) taken_.insert(member->id);
    }

    bool grow_up() {
        for (const op* user : members_)
            for (const logical_tensor& input : user->inputs)
                if (take_maker(input, *user)) return true;
        return false;
    }

    // Makers stand before their users: in front is always right.
    bool take_maker(const logical_tensor& value, const op& user) {
        const op* maker = values_.maker(value.id);
        return maker != nullptr &&
               may_join(*maker, is_cond(user, value) ? makes_cond : makes_source) &&
               values_.only_user(value.id) == &user &&
               same_known_shape(maker->outputs[0], user.outputs[0]) &&
               insert(members_.begin(), *maker);
    }

    bool grow_down() {
        const logical_tensor& result = members_.back()->outputs[0];
        const op* user = values_.only_user(result.id);
        return user != nullptr && may_join(*user, uses_result) &&
               same_known_shape(result, user->outputs[0]) &&
               user->inputs[0].type != data_type::boolean && insert(members_.end(), *user);
    }

    bool may_join(const op& op, place where) const {
        return std::ranges::find(members_, &op) == members_.end() && allows(op.kind, where) &&
               is_free(op) && op.outputs.size() == 1;
    }

    // False where the operators together are no expression.
    bool insert(op_list::const_iterator position, const op& op) {
        op_list larger(members_.cbegin(), position);
        larger.push_back(&op);
        larger.insert(larger.end(), position, members_.cend());
        if (!try_group(larger)) return false;
        members_ = std::move(larger);
        return true;
    }

    std::span<const op> graph_;
    graph_index values_;
    const op_filter& stands_alone_;
    op_list members_; // of the group that grows
    std::set<std::size_t> taken_;
    std::vector<expression_group> groups_;
};

} // namespace

std::vector<expression_group> find_groups(std::span<const op> graph,
                                          const op_filter& stands_alone) {
    return group_finder(graph, stands_alone).find();
}

} // namespace maskwise::graph
