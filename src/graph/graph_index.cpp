#include "graph/graph_index.hpp"

namespace maskwise::graph {

graph_index::graph_index(std::span<const op> ops, const op_filter& may_make) {
    for (const op& op : ops) {
        for (const auto& input : op.inputs) users_[input.id].push_back(&op);
        if (may_make && !may_make(op.id)) continue;
        for (const auto& output : op.outputs) makers_[output.id] = &op;
    }
}

const op* graph_index::maker(std::size_t value) const {
    const auto entry = makers_.find(value);
    return entry == makers_.end() ? nullptr : entry->second;
}

std::span<const op* const> graph_index::users(std::size_t value) const {
    const auto entry = users_.find(value);
    return entry == users_.end() ? std::span<const op* const>() : entry->second;
}

const op* graph_index::only_user(std::size_t value) const {
    const auto consumers = users(value);
    return consumers.size() == 1 ? consumers[0] : nullptr;
}

const op* graph_index::only_reader(std::size_t value) const {
    const op* only = nullptr;
    for (const op* user : users(value)) {
        if (user->kind == op_kind::gen_index) continue;
        if (only != nullptr) return nullptr;
        only = user;
    }
    return only;
}

} // namespace maskwise::graph
