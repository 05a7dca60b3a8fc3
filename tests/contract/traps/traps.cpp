// Traps for a library that wraps oneDNN's Graph API: one or more tests per trap number. The same
// binary runs with oneDNN alone (MASKWISE_EXPECT=alone) and with the plugin
// (MASKWISE_EXPECT=plugin). Trap 3 and the dumps of trap 9 concern the process, so
// surroundings/test_surroundings.py tests them.

#include "traps_support.hpp"

#include "support/client/library_facts.hpp"

#include "oneapi/dnnl/dnnl.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <set>
#include <string>

namespace maskwise::contract {
namespace {

constexpr auto fusion = dnnl_graph_partition_policy_fusion;
constexpr auto debug = dnnl_graph_partition_policy_debug;

const node select_node = select_of({40}, {9, 40}, {1}, {9, 40});
const logical_tensor &cond = select_node.inputs[0], &src_0 = select_node.inputs[1],
                     &src_1 = select_node.inputs[2], &dst = select_node.outputs[0];

// Returns the bytes of `select`'s dst, computed by the reference.
std::vector<std::uint8_t> expected(const node& select) {
    memory bytes;
    select_by_reference(select, bytes);
    return bytes[select.outputs[0].id];
}

// Executes with these inputs in this order, and expects the right dst.
void expect_right(dnnl_graph_compiled_partition_t compiled,
                  const std::vector<logical_tensor>& inputs = {cond, src_0, src_1}) {
    memory bytes;
    ASSERT_EQ(execute(compiled, inputs, {dst}, bytes), dnnl_success);
    EXPECT_EQ(bytes[dst.id], expected(select_node));
}

class traps : public testing::Test {
protected:
    // Skips the test if this oneDNN alone does not support Select.
    void SetUp() override {
        graph = build({select_node});
        partition = std::move(partitions_of(graph.get(), fusion).at(0));
        const bool supported = is_supported(partition.get());
        ASSERT_TRUE(supported || !plugin_expected());
        if (!supported) GTEST_SKIP() << "this oneDNN alone does not support Select";
    }

    owned_compiled compiled() {
        auto result = compile(partition.get(), {cond, src_0, src_1}, {dst});
        EXPECT_NE(result, nullptr);
        EXPECT_EQ(maskwise_owns(result.get()), plugin_expected());
        return result;
    }

    owned_graph graph;
    owned_partition partition;
};

// 1: every function accepts the partitions and compiled partitions that Maskwise executes, even a
// SYCL function and a function that no public header declares.
TEST_F(traps, trap_01_every_function_accepts_the_handles) {
    std::size_t id = 0;
    EXPECT_EQ(dnnl_graph_partition_get_id(partition.get(), &id), dnnl_success);
    EXPECT_GT(id, 0U);
    EXPECT_EQ(ops_of(partition.get()), std::vector<std::size_t>{7});
    EXPECT_EQ(inputs_of(partition.get()).size(), 3U);
    EXPECT_EQ(outputs_of(partition.get()).size(), 1U);
    dnnl_engine_kind_t kind{};
    EXPECT_EQ(dnnl_graph_partition_get_engine_kind(partition.get(), &kind), dnnl_success);
    EXPECT_EQ(kind, dnnl_cpu);
    EXPECT_NO_FATAL_FAILURE(ask_mangled_partition_kind(partition.get()));
    const auto result = compiled();
    const std::vector<void*> no_events; // no events, so the type does not matter
    for (const void* deps :
         {static_cast<const void*>(nullptr), static_cast<const void*>(&no_events)})
        EXPECT_EQ(execute_sycl(result.get(), select_node, deps),
                  is_sycl() ? dnnl_success : dnnl_unimplemented);
    logical_tensor scratchpad = dense(9, dnnl_f32, {7});
    const auto status = scratchpad_of(result.get(), &scratchpad);
    const bool is_answered = status == dnnl_success && plugin_expected();
    EXPECT_EQ(is_answered ? scratchpad.dims[0] : 0, 0);
}

// 2: from 3.13 on, the real execute calls execute_v2 by its exported name, and so calls the plugin.
TEST_F(traps, trap_02_the_real_library_calls_back) {
    const node relu{1, dnnl_graph_op_relu, {dst}, {dense(4, dnnl_f32, {9, 40})}};
    const auto bytes = run_graph({relu}, fusion);
    ASSERT_FALSE(bytes.empty());
    EXPECT_EQ(bytes.at(4), bytes.at(3)); // no input is negative
    const std::size_t capacity = constant_cache_capacity();
    EXPECT_EQ(set_constant_cache_capacity(capacity),
              library().minor >= 4 ? dnnl_success : dnnl_unimplemented);
}

// 4: the plugin exports functions that an older oneDNN lacks. Three functions work with every
// oneDNN: execute_v2, the scratchpad query and the logical tensor of a tensor. The other functions
// return `unimplemented`.
TEST_F(traps, trap_04_functions_that_old_libraries_lack) {
    if (!plugin_expected()) GTEST_SKIP() << "these functions do not exist without the plugin";
    const auto result = compiled();
    EXPECT_EQ(execute_v2(result.get(), select_node), expected(select_node));
    logical_tensor answer{};
    EXPECT_EQ(scratchpad_of(result.get(), &answer), dnnl_success);
    EXPECT_EQ(answer.ndims, 1);
    EXPECT_EQ(logical_tensor_of_a_tensor(src_0).id, src_0.id);
    EXPECT_EQ(set_fpmath_mode(build({}).get()),
              library().minor >= 7 ? dnnl_invalid_graph : dnnl_unimplemented);
    EXPECT_EQ(set_dump_mode(0), library().minor >= 11 ? dnnl_success : dnnl_unimplemented);
    EXPECT_EQ(set_dump_mode(~0U),
              library().minor >= 11 ? dnnl_invalid_arguments : dnnl_unimplemented);
    EXPECT_EQ(create_ocl_allocator(), dnnl_unimplemented);
}

// 5: execute takes tensors in the order of the list passed to compile, not in the order of the
// ports. The list may have another order, extra tensors and repeated tensors.
TEST_F(traps, trap_05_positions_are_those_of_compile) {
    const logical_tensor extra = dense(99, dnnl_f32, {5});
    for (const auto& list :
         std::vector<std::vector<logical_tensor>>{{src_1, cond, src_0},
                                                  {extra, src_0, src_1, cond},
                                                  {src_0, src_1, src_0, cond, src_1}}) {
        const auto result = compile(partition.get(), list, {dst});
        ASSERT_NE(result, nullptr);
        expect_right(result.get(), list);
    }
}

// 6: tensors passed to execute may have other descriptions than at compile. Only a tensor's memory
// counts.
TEST_F(traps, trap_06_descriptions_of_executed_tensors_do_not_count) {
    memory bytes;
    select_by_reference(select_node, bytes);
    bytes[dst.id].assign(bytes[dst.id].size(), 0xEE);
    const auto result = compiled();
    const auto flat = [](const logical_tensor& like, std::int64_t extent) {
        return dense(like.id, like.data_type, {extent});
    };
    ASSERT_EQ(execute(result.get(), {flat(cond, 40), flat(src_0, 360), dense(2, dnnl_f32, {})},
                      {strided(3, dnnl_f32, {40, 9}, {1, 40})}, bytes),
              dnnl_success);
    EXPECT_EQ(bytes[dst.id], expected(select_node));
}

// 7: a request for more partitions than exist succeeds and creates empty objects for the rest.
// Every call returns new handles with new ids. filter may run again with another policy.
TEST_F(traps, trap_07_counts_and_fresh_handles) {
    std::set<std::size_t> ids;
    std::vector<owned_partition> older;
    for (const auto policy : {fusion, debug, fusion, debug}) {
        for (auto& fresh : partitions_of(graph.get(), policy)) {
            std::size_t id = 0;
            dnnl_graph_partition_get_id(fresh.get(), &id);
            EXPECT_TRUE(ids.insert(id).second) << id;
            EXPECT_TRUE(is_supported(fresh.get()));
            older.push_back(std::move(fresh));
        }
    }
    EXPECT_EQ(ids.size(), 4U);
    dnnl_graph_partition_t more[3] = {};
    ASSERT_EQ(dnnl_graph_graph_get_partitions(graph.get(), 3, more), dnnl_success);
    EXPECT_TRUE(is_supported(more[0]));
    for (auto* each : more) EXPECT_EQ(dnnl_graph_partition_destroy(each), dnnl_success);
    graph.reset(); // partitions outlive their graph
    for (const auto& each : older)
        EXPECT_NE(compile(each.get(), {cond, src_0, src_1}, {dst}), nullptr);
}

// 8: a Select that oneDNN fuses with its neighbours stays in oneDNN's partition. The number of
// partitions does not change.
TEST_F(traps, trap_08_fused_selects_stay_fused) {
    const logical_tensor a = dense(10, dnnl_f32, {9, 8}), b = dense(11, dnnl_f32, {8, 40});
    const logical_tensor scores = dense(12, dnnl_f32, {9, 40});
    const std::vector<node> nodes = {{1, dnnl_graph_op_matmul, {a, b}, {scores}},
                                     {2, dnnl_graph_op_select, {cond, src_1, scores}, {dst}}};
    const auto fused = build(nodes);
    EXPECT_EQ(partitions_of(fused.get(), fusion).size(), library().minor >= 5 ? 1U : 2U);
    EXPECT_EQ(partitions_of(fused.get(), debug).size(), 2U);
    auto together = run_graph(nodes, fusion), apart = run_graph(nodes, debug);
    ASSERT_FALSE(together.empty());
    EXPECT_EQ(together[dst.id], apart[dst.id]);
}

// 9: a Select that Maskwise executes stays in oneDNN's graph exactly as the client passed it.
TEST_F(traps, trap_09_the_select_is_not_replaced) {
    const auto inputs = inputs_of(partition.get()), outputs = outputs_of(partition.get());
    ASSERT_EQ(inputs.size(), 3U);
    const logical_tensor* const inputs_of_partition[] = {&cond, &src_0, &src_1};
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_TRUE(is_equal(inputs[i], *inputs_of_partition[i])) << i;
    EXPECT_TRUE(is_equal(outputs.at(0), dst));
    EXPECT_EQ(ops_of(partition.get()), std::vector<std::size_t>{select_node.id});
}

// 10: add_op copies: the client may change or destroy its operator at once. add_op ignores a second
// operator with the same id and returns success. The length passed with a string is ignored.
TEST_F(traps, trap_10_add_op_takes_a_snapshot) {
    owned_graph other = make_graph();
    auto op = make_op(select_node);
    ASSERT_EQ(dnnl_graph_op_set_attr_str(op.get(), dnnl_graph_op_attr_auto_broadcast, "numpy", 1),
              dnnl_success);
    ASSERT_EQ(dnnl_graph_add_op(other.get(), op.get()), dnnl_success);
    dnnl_graph_op_set_attr_str(op.get(), dnnl_graph_op_attr_auto_broadcast, "none", 4);
    dnnl_graph_op_add_input(op.get(), &cond);
    op.reset();
    const node same_id{
        7, dnnl_graph_op_select, {cond, src_1, src_0}, {dense(50, dnnl_f32, {9, 40})}};
    ASSERT_EQ(dnnl_graph_add_op(other.get(), make_op(same_id).get()), dnnl_success);
    ASSERT_EQ(dnnl_graph_graph_finalize(other.get()), dnnl_success);
    const auto partitions = partitions_of(other.get(), fusion);
    ASSERT_EQ(partitions.size(), 1U);
    const auto result = compile(partitions[0].get(), {cond, src_0, src_1}, {dst});
    ASSERT_NE(result, nullptr);
    expect_right(result.get());
}

// 11: a dst with layout `any` is reported as strided, so oneDNN's helper functions can read it.
TEST_F(traps, trap_11_no_opaque_layout_is_handed_out) {
    const auto result =
        compile(partition.get(), {cond, src_0, src_1}, {any_layout(3, dnnl_f32, {9, 40})});
    ASSERT_NE(result, nullptr);
    logical_tensor answer{};
    ASSERT_EQ(dnnl_graph_compiled_partition_query_logical_tensor(result.get(), 3, &answer),
              dnnl_success);
    EXPECT_EQ(answer.layout_type, dnnl_graph_layout_type_strided);
    std::size_t bytes = 0;
    EXPECT_EQ(dnnl_graph_logical_tensor_get_mem_size(&answer, &bytes), dnnl_success);
    EXPECT_EQ(bytes, 9U * 40 * 4);
    EXPECT_TRUE(is_equal(answer, dst));
}

// 12: exceptions of the client's callbacks reach the client through the plugin. The transcripts
// compile/cond_* test that oneDNN's exceptions become statuses.
TEST(traps_of_callbacks, trap_12_exceptions_of_callbacks_reach_the_client) {
    if (is_sycl()) GTEST_SKIP() << "SYCL builds refuse allocators of host functions";
    if (library().minor < 3)
        GTEST_SKIP() << "oneDNN 3.2 alone does not pass on an allocator's exception";
    EXPECT_TRUE(a_throwing_allocator_reaches_the_client());
}

// 13: some calls succeed unexpectedly. For example, a client can create a partition from one
// operator without a graph. Maskwise executes this partition, too. The transcripts handles/queries
// and schema/two_inputs test more of these calls.
TEST_F(traps, trap_13_partition_of_a_single_operator) {
    dnnl_graph_partition_t raw = nullptr;
    ASSERT_EQ(dnnl_graph_partition_create_with_op(&raw, make_op(select_node).get(), dnnl_cpu),
              dnnl_success);
    const owned_partition single(raw);
    const auto result = compile(single.get(), {cond, src_0, src_1}, {dst});
    ASSERT_NE(result, nullptr);
    EXPECT_EQ(maskwise_owns(result.get()), plugin_expected());
    expect_right(result.get());
}

// 14: the value of a host scalar is copied when the tensor is created, and cannot be queried later.
TEST_F(traps, trap_14_a_host_scalar_is_copied_at_creation) {
    if (!plugin_expected()) GTEST_SKIP() << "oneDNN throws at compile";
    if (library().minor < 9) GTEST_SKIP() << "host scalars came with oneDNN 3.9";
    for (const std::size_t slot : {1U, 2U}) {
        node spec{1, dnnl_graph_op_select, {cond, src_0, dense(2, dnnl_f32, {9, 40})}, {dst}};
        spec.inputs[slot] = scalar_of_host(spec.inputs[slot].id);
        EXPECT_EQ(run_with_host_scalar(spec, slot, 42.5F), select_with_scalar(spec, slot, 42.5F));
    }
}

TEST_F(traps, trap_14_a_host_scalar_is_one_element) {
    if (!plugin_expected())
        GTEST_SKIP() << "oneDNN alone does not check that the tensor has one element";
    if (library().minor < 9) GTEST_SKIP() << "host scalars came with oneDNN 3.9";
    constexpr std::size_t wrong = 20;
    const auto matrix = [](std::size_t id) { return dense(id, dnnl_f32, {8, 8}); };
    const auto mask = dense(10, dnnl_boolean, {8});
    const node alone{1, dnnl_graph_op_select, {mask, matrix(11), matrix(wrong)}, {matrix(12)}};
    const node producer{2, dnnl_graph_op_matmul, {matrix(13), matrix(14)}, {matrix(11)}};
    const node consumer{3,
                        dnnl_graph_op_softmax,
                        {matrix(12)},
                        {matrix(15)},
                        {{dnnl_graph_op_attr_axis, std::vector<std::int64_t>{-1}}}};
    std::vector<std::vector<node>> clients{{alone}, {producer, alone}};
    if (merges()) clients.push_back({alone, consumer}); // else oneDNN runs the SoftMax
    for (const auto& nodes : clients)
        EXPECT_EQ(status_with_host_scalar(nodes, wrong), dnnl_invalid_arguments) << nodes.size();
}

// 15: a compiled partition outlives its graph and its partition, even if later objects reuse the
// addresses of both. stress.cpp tests threads.
TEST_F(traps, trap_15_a_compiled_partition_outlives_its_graph) {
    const auto result = compiled();
    partition.reset();
    graph.reset();
    std::vector<owned_compiled> others;
    for (int i = 0; i < 200; ++i) {
        const auto other = build({select_node});
        const auto partitions = partitions_of(other.get(), fusion);
        others.push_back(compile(partitions.at(0).get(), {cond, src_0, src_1}, {dst}));
        if (others.size() > 50) others.erase(others.begin(), others.begin() + 25);
    }
    expect_right(result.get());
    for (const auto& other : others) expect_right(other.get());
}

TEST_F(traps, trap_15_engines_come_and_go) {
    if (!plugin_expected()) GTEST_SKIP() << "oneDNN ties a compiled partition to one engine";
    owned_compiled result;
    for (int i = 0; i < 3; ++i) {
        dnnl_engine_t engine = nullptr;
        ASSERT_EQ(dnnl_engine_create(&engine, dnnl_cpu, 0), dnnl_success);
        result = compile(partition.get(), {cond, src_0, src_1}, {dst}, engine);
        ASSERT_NE(result, nullptr);
        ASSERT_EQ(dnnl_engine_destroy(engine), dnnl_success);
        expect_right(result.get()); // the tensors and the stream have another CPU engine
    }
}

TEST_F(traps, null_handles_stay_invalid_after_many_handles) {
    std::vector<owned_compiled> many;
    std::vector<owned_graph> graphs;
    std::vector<owned<dnnl_graph_op_t>> ops;
    for (int i = 0; plugin_expected() && i < 4000; ++i) {
        many.push_back(compile(partition.get(), {cond, src_0, src_1}, {dst}));
        graphs.push_back(make_graph());
        ops.push_back(make_op(select_node));
    }
    many.clear();
    graphs.clear();
    ops.clear();
    EXPECT_EQ(dnnl_graph_compiled_partition_execute(nullptr, cpu_stream(), 0, nullptr, 0, nullptr),
              dnnl_invalid_arguments);
    EXPECT_EQ(dnnl_graph_add_op(nullptr, make_op(select_node).get()), dnnl_invalid_arguments);
    EXPECT_EQ(dnnl_graph_op_add_input(nullptr, &cond), dnnl_invalid_arguments);
    EXPECT_EQ(dnnl_graph_compiled_partition_destroy(nullptr), dnnl_success);
    EXPECT_EQ(dnnl_graph_op_destroy(nullptr), dnnl_success);
}

// A large Select starts threads. The process must not load a second libtbb for these threads.
TEST_F(traps, the_process_has_only_one_libtbb) {
    const dims large{1000, 1000};
    run_graph({select_of(large, large, large, large)});
    std::ifstream maps("/proc/self/maps");
    std::set<std::string> files;
    for (std::string line; std::getline(maps, line);)
        if (const auto slash = line.find("/"); line.find("libtbb.so") != std::string::npos)
            files.insert(line.substr(slash));
    EXPECT_LE(files.size(), 1U);
#ifndef MASKWISE_STD_THREADS
    if (plugin_expected()) {
        EXPECT_EQ(files.size(), 1U);
    }
#endif
}

TEST_F(traps, a_reused_handle_runs_the_last_compiled_partition) {
    if (!plugin_expected())
        GTEST_SKIP() << "in oneDNN alone, a handle compiled twice has undefined results";
    const auto handle = make_compiled(partition.get());
    for (const std::int64_t rows : {3, 9}) {
        const node spec = select_of({40}, {rows, 40}, {1}, {rows, 40});
        ASSERT_EQ(compile_into(handle.get(), partition.get(), spec.inputs, spec.outputs),
                  dnnl_success);
        memory bytes;
        ASSERT_EQ(execute(handle.get(), spec.inputs, spec.outputs, bytes), dnnl_success);
        EXPECT_EQ(bytes[dst.id], expected(spec));
    }
}

// Execution must use the latest compilation.
TEST_F(traps, one_handle_compiled_by_maskwise_and_by_onednn_in_turns) {
    const logical_tensor relu_out = dense(30, dnnl_f32, {9, 40});
    const auto relu_graph = build({{1, dnnl_graph_op_relu, {src_0}, {relu_out}}});
    const auto relu = std::move(partitions_of(relu_graph.get(), fusion).at(0));
    const auto handle = make_compiled(partition.get());
    auto* const raw = handle.get();
    for (int turn = 0; turn < 3; ++turn) {
        ASSERT_EQ(compile_into(raw, partition.get(), {cond, src_0, src_1}, {dst}), dnnl_success);
        EXPECT_EQ(maskwise_owns(raw), plugin_expected());
        expect_right(raw);
        ASSERT_EQ(compile_into(raw, relu.get(), {src_0}, {relu_out}), dnnl_success);
        EXPECT_FALSE(maskwise_owns(raw));
        memory bytes;
        ASSERT_EQ(execute(raw, {src_0}, {relu_out}, bytes), dnnl_success);
        EXPECT_EQ(bytes[relu_out.id], bytes[src_0.id]);
    }
}

} // namespace
} // namespace maskwise::contract
