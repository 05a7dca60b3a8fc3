// Results of add_op: types, counts and attributes of Select's schema.

#include "select_graph.hpp"

namespace maskwise::contract {
namespace {

const dims shape{2, 3};

struct schema_case {
    const char* name;
    std::vector<logical_tensor> inputs, outputs;
};

logical_tensor typed(std::size_t id, dnnl_data_type_t type) {
    return dense(id, type, shape);
}

const std::vector<schema_case>& cases() {
    const auto c = typed(cond_id, dnnl_boolean);
    const auto a = typed(src_0_id, dnnl_f32), b = typed(src_1_id, dnnl_f32);
    const auto d = typed(dst_id, dnnl_f32);
    static const std::vector<schema_case> table = {
        {"right", {c, a, b}, {d}},
        {"cond_u8", {typed(cond_id, dnnl_u8), a, b}, {d}},
        {"cond_f32", {typed(cond_id, dnnl_f32), a, b}, {d}},
        {"one_source_bf16", {c, typed(src_0_id, dnnl_bf16), b}, {d}},
        {"dst_bf16", {c, a, b}, {typed(dst_id, dnnl_bf16)}},
        {"s32",
         {c, typed(src_0_id, dnnl_s32), typed(src_1_id, dnnl_s32)},
         {typed(dst_id, dnnl_s32)}},
        {"undef", {c, typed(src_0_id, dnnl_data_type_undef), b}, {d}},
        {"two_inputs", {c, a}, {d}},
        {"four_inputs", {c, a, b, typed(9, dnnl_f32)}, {d}},
        {"no_output", {c, a, b}, {}},
        {"two_outputs", {c, a, b}, {d, typed(9, dnnl_f32)}},
    };
    return table;
}

template <typename SetAttribute>
void add_select(const transcript& out, const std::vector<logical_tensor>& inputs,
                const std::vector<logical_tensor>& outputs, SetAttribute set_attribute) {
    dnnl_graph_op_t op = nullptr;
    out.status("op_create", dnnl_graph_op_create(&op, 1, dnnl_graph_op_select, "sel"));
    const owned<dnnl_graph_op_t> owner(op);
    for (const auto& input : inputs) out.status("add_input", dnnl_graph_op_add_input(op, &input));
    for (const auto& output : outputs)
        out.status("add_output", dnnl_graph_op_add_output(op, &output));
    set_attribute(op);
    out.status("add_op", dnnl_graph_add_op(make_graph().get(), op));
    dnnl_graph_partition_t partition = nullptr;
    const auto status = dnnl_graph_partition_create_with_op(&partition, op, dnnl_cpu);
    out.status("create_with_op", status);
    std::uint8_t supported = 9;
    if (partition != nullptr) dnnl_graph_partition_is_supported(partition, &supported);
    out.note("supported", supported);
    if (status == dnnl_success) dnnl_graph_partition_destroy(partition);
}

void run_case(const transcript& out, const void* data) {
    const auto& each = *static_cast<const schema_case*>(data);
    add_select(out, each.inputs, each.outputs, [](dnnl_graph_op_t) {});
}

struct attribute_case {
    const char* name;
    dnnl_status_t (*set)(dnnl_graph_op_t); // returns the status of its last call
};

dnnl_status_t set_broadcast(dnnl_graph_op_t op, const char* text, std::size_t length) {
    return dnnl_graph_op_set_attr_str(op, dnnl_graph_op_attr_auto_broadcast, text, length);
}

dnnl_status_t set_number(dnnl_graph_op_t op, dnnl_graph_op_attr_t name) {
    const std::int64_t one = 1;
    return dnnl_graph_op_set_attr_s64(op, name, &one, 1);
}

constexpr attribute_case attribute_cases[] = {
    {"pdpd", [](dnnl_graph_op_t op) { return set_broadcast(op, "pdpd", 4); }},
    {"length_zero", [](dnnl_graph_op_t op) { return set_broadcast(op, "none", 0); }},
    {"twice",
     [](dnnl_graph_op_t op) {
         set_broadcast(op, "pdpd", 4);
         return set_broadcast(op, "none", 4);
     }},
    {"of_others", [](dnnl_graph_op_t op) { return set_number(op, dnnl_graph_op_attr_axis); }},
    {"as_s64",
     [](dnnl_graph_op_t op) { return set_number(op, dnnl_graph_op_attr_auto_broadcast); }},
};

void run_attribute_case(const transcript& out, const void* data) {
    const auto& each = *static_cast<const attribute_case*>(data);
    const schema_case& right = cases().front();
    add_select(out, right.inputs, right.outputs,
               [&](dnnl_graph_op_t op) { out.status("set", each.set(op)); });
}

} // namespace

void add_schema_scenarios(std::vector<scenario>& all_scenarios) {
    for (const auto& each : cases())
        all_scenarios.push_back({std::string("schema/") + each.name, run_case, &each});
    for (const auto& each : attribute_cases)
        all_scenarios.push_back(
            {std::string("schema/attribute_") + each.name, run_attribute_case, &each});
}

} // namespace maskwise::contract
