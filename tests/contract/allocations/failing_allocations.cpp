// For every n, a client builds, compiles and executes a graph while Maskwise's nth allocation
// fails, alone or with all later ones. Each call must succeed or return out_of_memory. Nothing
// leaks, and the next run succeeds.

#include "own_allocations.hpp"

#include "support/client/graph_client.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace maskwise::contract {
namespace {

using namespace test;

// Returns the status of the first failed call. If no call fails, returns nullopt and stores every
// tensor in `bytes`.
std::optional<dnnl_status_t> run_client(const std::vector<node>& nodes, memory& bytes) {
    const failures_are_thrown thrown;
    try {
        bytes = run_graph(nodes);
        if (bytes.empty()) return dnnl_unimplemented;
    } catch (const failed_call& failure) {
        return failure.status;
    }
    return std::nullopt;
}

node soft_max_of(std::size_t id, const logical_tensor& from, const logical_tensor& to) {
    return {id,
            dnnl_graph_op_softmax,
            {from},
            {to},
            {{dnnl_graph_op_attr_axis, std::vector<std::int64_t>{-1}}}};
}

// Returns a new extent per call, so that no plan is cached.
std::int64_t new_extent() {
    static std::int64_t last = 100;
    return ++last;
}

std::vector<node> one_select() {
    const std::int64_t n = new_extent();
    node select = select_of({n}, {3, n}, {3, n}, {3, n});
    select.attributes = {{dnnl_graph_op_attr_auto_broadcast, "numpy"}};
    return {select};
}

// oneDNN 3.8 and newer make one partition of this graph.
std::vector<node> attention() {
    const std::int64_t n = new_extent();
    const auto scores = [n](std::size_t id) { return dense(id, dnnl_f32, {1, 2, n, n}); };
    const auto rows = [n](std::size_t id) { return dense(id, dnnl_f32, {1, 2, n, 8}); };
    return {{1, dnnl_graph_op_matmul, {rows(0), dense(1, dnnl_f32, {1, 2, 8, n})}, {scores(2)}},
            {2, dnnl_graph_op_divide, {scores(2), dense(3, dnnl_f32, {1})}, {scores(4)}},
            {3,
             dnnl_graph_op_select,
             {dense(5, dnnl_boolean, {1, 1, 1, n}), scores(4), dense(6, dnnl_f32, {1})},
             {scores(7)},
             {{dnnl_graph_op_attr_auto_broadcast, "numpy"}}},
            soft_max_of(4, scores(7), scores(8)),
            {5, dnnl_graph_op_matmul, {scores(8), rows(9)}, {rows(10)}}};
}

// Two pairs of Select and SoftMax. If an allocation fails while Maskwise merges one pair, Maskwise
// still merges the other.
std::vector<node> merged() {
    const std::int64_t n = new_extent();
    const auto cond = dense(0, dnnl_boolean, {3, n});
    const auto t = [n](std::size_t id) { return dense(id, dnnl_f32, {3, n}); };
    return {{1, dnnl_graph_op_select, {cond, t(1), t(2)}, {t(3)}},
            soft_max_of(2, t(3), t(4)),
            {3, dnnl_graph_op_select, {cond, t(1), t(2)}, {t(5)}},
            soft_max_of(4, t(5), t(6))};
}

using scenario_nodes = std::vector<node> (*)();

// Runs a client with failing allocations. Returns whether an allocation failed.
bool run_failing(const std::vector<node>& nodes, std::int64_t nth, bool onwards) {
    memory bytes;
    own_allocations::fail(nth, onwards);
    const auto status = run_client(nodes, bytes);
    const bool failed = own_allocations::stop();
    EXPECT_EQ(status.value_or(dnnl_out_of_memory), dnnl_out_of_memory) << "allocation " << nth;
    return failed;
}

// Returns the least growth of live blocks in up to 20 runs with cached shapes. A leak adds blocks
// in every run. The handle table grows only in some runs.
std::int64_t least_growth(const std::vector<node>& nodes, std::int64_t nth, bool onwards) {
    std::int64_t least = 1;
    for (int attempt = 0; attempt < 20 && least > 0; ++attempt) {
        const std::int64_t before = own_allocations::living();
        run_failing(nodes, nth, onwards);
        least = std::min(least, own_allocations::living() - before);
    }
    return least;
}

class failing_allocations : public testing::TestWithParam<std::pair<scenario_nodes, bool>> {};

TEST_P(failing_allocations, return_a_status_and_leak_nothing) {
    const auto [make_nodes, onwards] = GetParam();
    std::int64_t nth = 0;
    for (bool failed = true; failed && !HasFailure(); ++nth) {
        const auto nodes = make_nodes();
        failed = run_failing(nodes, nth, onwards);
        EXPECT_LE(least_growth(nodes, nth, onwards), 0) << "leaked after allocation " << nth;
        memory bytes;
        EXPECT_EQ(run_client(nodes, bytes), std::nullopt) << "after allocation " << nth;
    }
    if (HasFailure()) return;
    RecordProperty("allocations", std::to_string(nth - 1));
    EXPECT_GT(nth, 10) << "Maskwise's allocations were not found";
}

// Maskwise runs out of memory while it records the inputs of an operator. The client still adds the
// operator to a graph. A merge must not remove the values that the operator reads.
TEST(failing_allocations_of_an_operator, keep_its_inputs_alive) {
    const auto t = [](std::size_t id) { return dense(id, dnnl_f32, {4, 8}); };
    const node select{
        1, dnnl_graph_op_select, {dense(10, dnnl_boolean, {8}), t(11), t(12)}, {t(13)}};
    const auto reader = make_op({3, dnnl_graph_op_wildcard, {t(13)}, {t(15)}});
    own_allocations::fail(0, true);
    for (std::size_t id = 20; id < 30; ++id) {
        const auto input = t(id);
        dnnl_graph_op_add_input(reader.get(), &input);
    }
    ASSERT_TRUE(own_allocations::stop());
    const failures_are_thrown thrown;
    const auto graph = make_graph();
    for (const auto& op : {make_op(select), make_op(soft_max_of(2, t(13), t(14)))})
        ASSERT_EQ(dnnl_graph_add_op(graph.get(), op.get()), dnnl_success);
    ASSERT_EQ(dnnl_graph_add_op(graph.get(), reader.get()), dnnl_success);
    ASSERT_EQ(dnnl_graph_graph_finalize(graph.get()), dnnl_success);
    EXPECT_EQ(partitions_of(graph.get()).size(), 3U);
}

INSTANTIATE_TEST_SUITE_P(clients, failing_allocations,
                         testing::Values(std::pair{&one_select, false},
                                         std::pair{&one_select, true}, std::pair{&attention, false},
                                         std::pair{&attention, true}, std::pair{&merged, false}));

} // namespace
} // namespace maskwise::contract
