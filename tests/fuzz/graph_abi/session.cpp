#include "session.hpp"

#include <algorithm>

namespace maskwise::fuzz {

namespace {

struct attribute_setter {
    const api& calls;
    dnnl_graph_op_t op;
    dnnl_graph_op_attr_t name;

    int operator()(const std::vector<std::int64_t>& value) const {
        return calls.op_set_attr_s64(op, name, value.data(), value.size());
    }
    int operator()(const std::vector<float>& value) const {
        return calls.op_set_attr_f32(op, name, value.data(), value.size());
    }
    int operator()(float value) const { return calls.op_set_attr_f32(op, name, &value, 1); }
    int operator()(bool value) const {
        const std::uint8_t byte = value ? 1 : 0;
        return calls.op_set_attr_bool(op, name, &byte, 1);
    }
    int operator()(const std::string& value) const {
        return calls.op_set_attr_str(op, name, value.c_str(), value.size());
    }
};

} // namespace

void session::build_op(const op_description& description) {
    dnnl_graph_op_t op = nullptr;
    note(calls.op_create(&op, description.id, description.kind, "op"));
    for (const auto& input : description.inputs) note(calls.op_add_input(op, &input));
    for (const auto& output : description.outputs) note(calls.op_add_output(op, &output));
    if (!description.auto_broadcast.empty())
        note(calls.op_set_attr_str(op, dnnl_graph_op_attr_auto_broadcast,
                                   description.auto_broadcast.c_str(), 1));
    const std::int64_t axis = 1;
    if (description.odd_attribute)
        note(calls.op_set_attr_s64(op, dnnl_graph_op_attr_axis, &axis, 1));
    for (const auto& [name, value] : description.attributes)
        note(std::visit(attribute_setter{calls, op, name}, value));
    ops.push_back(op);
}

void session::note_partition(dnnl_graph_partition_t partition) {
    partition_note summary;
    std::size_t count = 0;
    summary.answers.push_back(calls.partition_get_op_num(partition, &count));
    summary.ops.resize(count);
    summary.answers.push_back(calls.partition_get_ops(partition, count, summary.ops.data()));
    summary.answers.push_back(calls.partition_get_input_ports_num(partition, &count));
    summary.answers.push_back(static_cast<int>(count));
    summary.answers.push_back(calls.partition_get_output_ports_num(partition, &count));
    summary.answers.push_back(static_cast<int>(count));
    notes.push_back(std::move(summary));
}

void session::build_graph(const graph_description& description) {
    note(calls.graph_create(&graph, dnnl_cpu));
    for (const auto& op : description.ops) {
        build_op(op);
        note(calls.add_op(graph, ops.back()));
    }
    if (description.finalized) note(calls.graph_finalize(graph));
    std::size_t count = 0;
    note(calls.graph_filter(graph, description.policy));
    note(calls.graph_get_partition_num(graph, &count));
    partitions.resize(count);
    if (count > 0) note(calls.graph_get_partitions(graph, count, partitions.data()));
    for (auto* partition : partitions) note_partition(partition);
}

// If partition_create_with_op fails, oneDNN may still create an object, which the client may only
// destroy.
void session::build_single(const graph_description& description) {
    build_op(description.ops[0]);
    dnnl_graph_partition_t partition = nullptr;
    note(calls.partition_create_with_op(&partition, ops[0], dnnl_cpu));
    if (answers.back() == dnnl_success) {
        partitions.push_back(partition);
        note_partition(partition);
    } else if (partition != nullptr) {
        calls.partition_destroy(partition);
    }
}

void session::build(const graph_description& description) {
    if (description.through_single_op)
        build_single(description);
    else
        build_graph(description);
}

void session::destroy() {
    for (auto* partition : partitions) calls.partition_destroy(partition);
    calls.graph_destroy(graph);
    for (auto* op : ops) calls.op_destroy(op);
}

namespace {

// Returns false if `from` lacks the partition.
bool remove_equal(std::vector<partition_note>& from, const partition_note& description) {
    const auto position = std::find(from.begin(), from.end(), description);
    if (position == from.end()) return false;
    from.erase(position);
    return true;
}

bool remove_single(std::vector<partition_note>& from, std::size_t op) {
    const auto position = std::find_if(from.begin(), from.end(), [op](const auto& each) {
        return each.ops == std::vector<std::size_t>{op};
    });
    if (position == from.end()) return false;
    from.erase(position);
    return true;
}

} // namespace

std::string complain(const session& plugin_side, const session& other,
                     const graph_description& description) {
    if (plugin_side.answers != other.answers)
        return "the plugin returns another status than oneDNN alone";
    if (plugin_side.notes == other.notes) return {};
    if (description.policy != dnnl_graph_partition_policy_fusion || description.through_single_op)
        return "the partitions differ from oneDNN's";
    auto remaining = other.notes;
    for (const auto& each : plugin_side.notes) {
        if (remove_equal(remaining, each)) continue;
        if (each.ops.size() < 2)
            return "the plugin has a partition that oneDNN alone does not have";
        for (const std::size_t op : each.ops)
            if (!remove_single(remaining, op))
                return "the plugin merges operators that are not separate partitions in oneDNN";
    }
    return remaining.empty() ? "" : "the plugin lacks a partition that oneDNN alone has";
}

} // namespace maskwise::fuzz
