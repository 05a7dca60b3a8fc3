#include "onednn/records.hpp"

#include "base/first_use.hpp"

#include <algorithm>
#include <pthread.h>

namespace maskwise::onednn {

op_record::op_record(std::size_t op_id, int op_kind, const char* op_name)
    : id(op_id), kind(op_kind), name(op_name, &pool_) {
    inputs.reserve(2);
    outputs.reserve(1);
}

op_record::op_record(const op_record& other)
    : id(other.id), kind(other.kind), name(other.name, &pool_),
      attributes(other.attributes, &pool_), inputs(other.inputs, &pool_),
      outputs(other.outputs, &pool_) {}

void op_record::set(int attribute_name, attribute value) {
    for (auto& [name_held, value_held] : attributes)
        if (name_held == attribute_name) {
            value_held = std::move(value);
            return;
        }
    attributes.emplace_back(attribute_name, std::move(value));
}

const attribute* op_record::find(int attribute_name) const {
    const auto found =
        std::find_if(attributes.begin(), attributes.end(),
                     [attribute_name](const auto& held) { return held.first == attribute_name; });
    return found == attributes.end() ? nullptr : &found->second;
}

const abi::logical_tensor* find_by_id(std::span<const abi::logical_tensor> tensors,
                                      std::size_t id) {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [id](const auto& tensor) { return tensor.id == id; });
    return found == tensors.end() ? nullptr : &*found;
}

std::shared_ptr<const op_record> find_op(const graph_record& graph, std::size_t id) {
    const auto found = std::find_if(graph.ops.begin(), graph.ops.end(),
                                    [id](const auto& op) { return op->id == id; });
    return found == graph.ops.end() ? nullptr : *found;
}

std::string joined_names(std::span<const std::shared_ptr<const op_record>> ops) {
    std::string names;
    for (const auto& op : ops) {
        if (!names.empty()) names += ';';
        names += op->name;
    }
    return names;
}

// A fork may be the first to ask, and has nobody to tell that there is no memory: none is needed.
side_tables& tables() {
    return at_first_use<[] { return side_tables(); }>();
}

namespace {

template <typename Act>
void for_each_table(Act&& act) {
    side_tables& all = tables();
    act(all.ops);
    act(all.graphs);
    act(all.partitions);
    act(all.regions);
    act(all.tensors);
    act(all.compiled);
}

void lock_all() {
    for_each_table([](auto& table) { table.lock(); });
}
void unlock_all() {
    for_each_table([](auto& table) { table.unlock(); });
}

// Held by a thread that the child does not have, a table would stay locked there.
[[maybe_unused]] const int watching_forks = pthread_atfork(lock_all, unlock_all, unlock_all);

} // namespace

void forget_partition(abi::partition partition) {
    tables().partitions.erase(partition);
    tables().regions.erase(partition);
}

} // namespace maskwise::onednn
