#include "graph/expression_group.hpp"

#include "base/error.hpp"
#include "graph/match.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace maskwise::graph {
namespace {

// Where an operator may stand beside a Select, or beside what has been merged with one.
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

// So many values fit the registers of AVX2 at once whatever the operators and however their
// operands broadcast, with what the operators need besides: a group never fails to compile. A value
// that is rounded gives way to what comes out and does not count again, so that a group is one
// whichever types it is compiled with.
constexpr std::size_t most_values = 10;

bool allows(op_kind kind, place where) {
    return std::any_of(std::begin(rules), std::end(rules), [&](const merge_rule& rule) {
        return rule.kind == kind && (rule.places & where) != 0;
    });
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

bool has_numbers(op_kind kind) {
    return kind == op_kind::leaky_relu || kind == op_kind::clamp || kind == op_kind::quantize;
}

bool same_known_shape(const logical_tensor& a, const logical_tensor& b) {
    return a.shape_known() && b.shape_known() && a.extents == b.extents;
}

// A tree as an expression. Throws invalid_argument where it is none that can be compiled.
class tree_writer {
public:
    explicit tree_writer(expression_group& group) : group_(group) {}

    void write() {
        const op& root = group_.ops.back();
        group_.what.result = root.outputs[0].type;
        for (const op& each : group_.ops)
            for (const auto& output : each.outputs) inner_.insert(output.id);
        for (const op& each : group_.ops) add_inputs(each);
        for (const op& each : group_.ops) add_op(each);
        jit::validate(group_.what);
        if (group_.what.nodes.size() > most_values + roundings_)
            throw invalid_argument("too many values");
    }

private:
    void add_inputs(const op& from) {
        for (const auto& input : from.inputs) {
            if (inner_.contains(input.id)) continue;
            group_.inputs.push_back(input);
            if (nodes_.contains(input.id)) continue;
            nodes_[input.id] = group_.what.add({jit::node_kind::input, {-1, -1, -1}, input.type});
            group_.input_ids.push_back(input.id);
        }
    }

    void add_op(const op& from) {
        const auto kind = node_kind_of(from.kind);
        if (!kind || from.inputs.size() != jit::argument_count(*kind) || from.outputs.size() != 1)
            throw invalid_argument("an operator with other operands");
        jit::node next{*kind};
        const logical_tensor& output = from.outputs[0];
        if (*kind == jit::node_kind::type_cast || *kind == jit::node_kind::quantize)
            next.type = output.type;
        if (has_numbers(from.kind) && !from.numbers) throw invalid_argument("other attributes");
        if (from.numbers) next.alpha = (*from.numbers)[0], next.beta = (*from.numbers)[1];
        std::ranges::transform(from.inputs, next.arguments.begin(),
                               [&](const logical_tensor& input) { return nodes_.at(input.id); });
        nodes_[output.id] = rounded(group_.what.add(next), from);
    }

    // Between operators values have their tensors' types, as they would in memory.
    int rounded(int value, const op& maker) {
        const data_type type = maker.outputs[0].type;
        const bool is_exact = maker.kind == op_kind::select || maker.kind == op_kind::type_cast;
        const bool is_half = type == data_type::bf16 || type == data_type::f16;
        if (is_exact || !is_half || &maker == &group_.ops.back()) return value;
        ++roundings_;
        return group_.what.add({jit::node_kind::type_cast, {value, -1, -1}, type});
    }

    expression_group& group_;
    std::set<std::size_t> inner_;
    std::map<std::size_t, int> nodes_; // by tensor
    std::size_t roundings_ = 0;        // nodes that no operator stands for
};

class group_finder {
public:
    group_finder(std::span<const op> graph, const std::function<bool(std::size_t)>& stands_alone)
        : graph_(graph), stands_alone_(stands_alone) {
        for (const op& each : graph) {
            for (const auto& output : each.outputs) makers_[output.id] = &each;
            for (const auto& input : each.inputs) users_[input.id].push_back(&each);
        }
    }

    std::vector<expression_group> run() {
        for (const op& each : graph_)
            if (each.kind == op_kind::select && is_free(each)) grow(each);
        return std::move(groups_);
    }

private:
    bool is_free(const op& candidate) const {
        return !taken_.contains(candidate.id) && stands_alone_(candidate.id);
    }

    // The operator that alone uses the value, once.
    const op* only_user(std::size_t id) const {
        const auto found = users_.find(id);
        return found == users_.end() || found->second.size() != 1 ? nullptr : found->second[0];
    }

    const op* maker_of(const logical_tensor& value) const {
        const auto found = makers_.find(value.id);
        return found == makers_.end() ? nullptr : found->second;
    }

    void grow(const op& select) {
        std::vector<const op*> members{&select};
        if (!try_group(members)) return;
        for (bool has_grown = true; has_grown;) {
            has_grown = grow_up(members);
            has_grown = grow_down(members) || has_grown;
        }
        if (members.size() < 2) return;
        groups_.push_back(*try_group(members));
        for (const op* each : members) taken_.insert(each->id);
    }

    // Makers stand before their users: in front is always right.
    bool grow_up(std::vector<const op*>& members) {
        for (const op* user : members)
            for (const logical_tensor& input : user->inputs) {
                const bool is_cond =
                    user->kind == op_kind::select && &input == &user->inputs.front();
                const op* maker = maker_of(input);
                if (maker == nullptr ||
                    !joins(members, *maker, is_cond ? makes_cond : makes_source) ||
                    only_user(input.id) != user ||
                    !same_known_shape(maker->outputs[0], user->outputs[0]))
                    continue;
                std::vector<const op*> larger = members;
                larger.insert(larger.begin(), maker);
                if (!try_group(larger)) continue;
                members = std::move(larger);
                return true;
            }
        return false;
    }

    bool grow_down(std::vector<const op*>& members) {
        const logical_tensor& result = members.back()->outputs[0];
        const op* user = only_user(result.id);
        if (user == nullptr || !joins(members, *user, uses_result) ||
            !same_known_shape(result, user->outputs[0]) ||
            user->inputs[0].type == data_type::boolean)
            return false;
        std::vector<const op*> larger = members;
        larger.push_back(user);
        if (!try_group(larger)) return false;
        members = std::move(larger);
        return true;
    }

    bool joins(const std::vector<const op*>& members, const op& candidate, place where) const {
        const bool is_member =
            std::find(members.begin(), members.end(), &candidate) != members.end();
        return !is_member && allows(candidate.kind, where) && is_free(candidate) &&
               candidate.outputs.size() == 1;
    }

    static std::optional<expression_group> try_group(const std::vector<const op*>& members) {
        expression_group group;
        for (const op* each : members) group.ops.push_back(*each);
        try {
            tree_writer(group).write();
        } catch (const invalid_argument&) {
            return std::nullopt;
        }
        return group;
    }

    std::span<const op> graph_;
    const std::function<bool(std::size_t)>& stands_alone_;
    std::map<std::size_t, const op*> makers_;
    std::map<std::size_t, std::vector<const op*>> users_;
    std::set<std::size_t> taken_;
    std::vector<expression_group> groups_;
};

} // namespace

std::vector<expression_group> find_groups(std::span<const op> graph,
                                          const std::function<bool(std::size_t)>& stands_alone) {
    return group_finder(graph, stands_alone).run();
}

} // namespace maskwise::graph
