// oneTBB has no memory for a task. execute must turn oneTBB's exception into a status. This program
// defines the function that allocates oneTBB's tasks. The loader prefers the program's function.

#include "support/client/graph_client.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <dlfcn.h>
#include <new>
#include <thread>

namespace {

bool fails = false;
bool has_failed = false;

} // namespace

namespace tbb::detail {
namespace d1 {
class small_object_pool;
}
namespace r1 {

[[gnu::visibility("default")]] void* allocate(d1::small_object_pool*& pool, std::size_t bytes) {
    using function = void* (*)(d1::small_object_pool*&, std::size_t);
    static const auto real = reinterpret_cast<function>(
        dlsym(RTLD_NEXT, "_ZN3tbb6detail2r18allocateERPNS0_2d117small_object_poolEm"));
    if (!fails) return real(pool, bytes);
    has_failed = true;
    throw std::bad_alloc();
}

} // namespace r1
} // namespace tbb::detail

namespace maskwise::test {
namespace {

TEST(failing_tasks, return_out_of_memory) {
    constexpr std::int64_t n = 1500;
    const node select = select_of({1, n}, {n, 1}, {n, n}, {n, n});
    const auto &inputs = select.inputs, &outputs = select.outputs;
    const auto graph = build({select});
    const auto partitions = partitions_of(graph.get());
    const auto compiled = compile(partitions.at(0).get(), inputs, outputs);
    memory bytes, expected;
    ASSERT_EQ(execute(compiled.get(), inputs, outputs, bytes), dnnl_success);
    fails = true;
    const auto status = execute(compiled.get(), inputs, outputs, bytes);
    fails = false;
    if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor: no tasks";
    EXPECT_TRUE(has_failed);
    EXPECT_EQ(status, dnnl_out_of_memory);
    select_by_reference(select, expected);
    EXPECT_EQ(execute(compiled.get(), inputs, outputs, bytes), dnnl_success);
    EXPECT_EQ(bytes.at(3), expected.at(3));
}

} // namespace
} // namespace maskwise::test
