// What a user gets from Select through the public API. The same binary runs with oneDNN alone and
// with the plugin in front; MASKWISE_EXPECT says which it must find itself in.

#include "cpp_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>

namespace maskwise::contract {
namespace {

// One Select with dense operands.
struct client_select {
    extents cond, src_0, src_1, dst;
    tensor_type type = f32;

    std::vector<logical_tensor> inputs() const {
        return {dense(0, cond, boolean), dense(1, src_0, type), dense(2, src_1, type)};
    }
    logical_tensor output() const { return dense(3, dst, type); }
};

// The only partition of a graph of one Select.
partition single_partition(const client_select& what) {
    return partitions_of({make(7, kind::Select, what.inputs(), what.output())}).at(0);
}

dnnl::graph::compiled_partition compile(const client_select& what) {
    return contract::compile(single_partition(what), what.inputs(), {what.output()});
}

// Compiles the partition on a handle that is compiled already, which the C++ header cannot.
void compile_again(const dnnl::graph::compiled_partition& handle, const client_select& what) {
    const auto described = [&what](std::size_t id, const extents& shape) {
        const auto type = id == 0 ? dnnl_boolean : static_cast<dnnl_data_type_t>(what.type);
        return test::dense(id, type, shape);
    };
    ASSERT_EQ(test::compile_into(
                  handle.get(), single_partition(what).get(),
                  {described(0, what.cond), described(1, what.src_0), described(2, what.src_1)},
                  {described(3, what.dst)}, engine().get()),
              dnnl_success);
}

struct buffers {
    std::vector<std::uint8_t> cond, src_0, src_1, dst;
};

// Every bit pattern, NaN payloads among them, when Maskwise executes; oneDNN alone carries 16-bit
// types through f32, and 3.7 multiplies and adds: there all numbers are positive and near one.
buffers random_buffers(const client_select& what, unsigned seed, bool all_patterns) {
    std::mt19937 random(seed);
    const std::size_t width = width_of(what.type);
    const auto fill = [&](const extents& shape, std::size_t bytes) {
        std::vector<std::uint8_t> result(element_count(shape) * bytes);
        for (auto& byte : result) byte = static_cast<std::uint8_t>(random());
        if (!all_patterns && bytes > 1)
            for (std::size_t i = bytes - 1; i < result.size(); i += bytes) result[i] = 0x3F;
        return result;
    };
    buffers made{fill(what.cond, 1), fill(what.src_0, width), fill(what.src_1, width), {}};
    for (auto& byte : made.cond) byte = byte % 3 == 0 ? 0 : byte;
    made.dst.resize(element_count(what.dst) * width, 0xEE);
    return made;
}

// Executes on these bytes.
void execute(const dnnl::graph::compiled_partition& compiled, const client_select& what,
             buffers& data) {
    const auto inputs = what.inputs();
    contract::execute(compiled,
                      {{inputs[0], data.cond.data()},
                       {inputs[1], data.src_0.data()},
                       {inputs[2], data.src_1.data()}},
                      {{what.output(), data.dst.data()}});
}

// What the reference makes of them.
std::vector<std::uint8_t> expected(const client_select& what, const buffers& data) {
    const auto width = static_cast<std::int64_t>(width_of(what.type));
    std::vector<std::uint8_t> dst(data.dst.size());
    test::select_reference(test::dense_view(data.cond.data(), what.cond, 1),
                           test::dense_view(data.src_0.data(), what.src_0, width),
                           test::dense_view(data.src_1.data(), what.src_1, width),
                           test::dense_view(dst.data(), what.dst, width), width);
    return dst;
}

// oneDNN alone supports a Select in the types of its other operators; the plugin supports every
// one.
bool runs_here(const client_select& what) {
    const bool has_type = what.type == tensor_type::f32 ||
                          (what.type == tensor_type::bf16 ? library().bf16 : library().f16);
    const bool expected = plugin_expected() || (knows_select() && has_type);
    EXPECT_EQ(single_partition(what).is_supported(), expected);
    return expected;
}

void check(const client_select& what, unsigned seed) {
    if (!runs_here(what)) GTEST_SKIP() << "this oneDNN does not support it alone";
    const auto compiled = compile(what);
    EXPECT_EQ(maskwise_owns(compiled), plugin_expected());
    auto data = random_buffers(what, seed, plugin_expected());
    execute(compiled, what, data);
    EXPECT_EQ(data.dst, expected(what, data));
}

const std::vector<client_select>& shapes() {
    static const std::vector<client_select> all = {
        {{2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}},
        {{4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}},
        {{3, 1, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}},
        {{1, 1, 1, 33}, {1}, {1, 4, 32, 33}, {1, 4, 32, 33}},
        {{1, 1, 32, 33}, {1, 4, 32, 33}, {}, {1, 4, 32, 33}},
        {{}, {7, 1}, {1, 9}, {7, 9}},
        {{300, 1}, {300, 3}, {300, 3}, {300, 3}},
        {{1}, {1}, {1}, {1}},
        {{}, {}, {}, {}},
        {{64, 1, 257}, {64, 33, 257}, {33, 1}, {64, 33, 257}},
    };
    return all;
}

class select_contract : public testing::TestWithParam<std::tuple<tensor_type, std::size_t>> {};

TEST_P(select_contract, is_exact) {
    client_select what = shapes()[std::get<1>(GetParam())];
    what.type = std::get<0>(GetParam());
    check(what, static_cast<unsigned>(std::get<1>(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(types_and_shapes, select_contract,
                         testing::Combine(testing::Values(tensor_type::f32, tensor_type::bf16,
                                                          tensor_type::f16),
                                          testing::Range<std::size_t>(0, 10)));

TEST(process, finds_itself_where_it_expects) {
    EXPECT_EQ(plugin_is_loaded(), plugin_expected());
}

TEST(process, has_one_libtbb) {
    const client_select what{{1000, 1000}, {1000, 1000}, {1000, 1000}, {1000, 1000}};
    if (runs_here(what)) {
        auto data = random_buffers(what, 3, false);
        execute(compile(what), what, data);
    }
    std::ifstream maps("/proc/self/maps");
    std::set<std::string> files;
    for (std::string line; std::getline(maps, line);)
        if (const auto at = line.find("/"); line.find("libtbb.so") != std::string::npos)
            files.insert(line.substr(at));
    EXPECT_LE(files.size(), 1U);
#ifndef MASKWISE_STD_THREADS
    if (plugin_expected()) {
        EXPECT_EQ(files.size(), 1U);
    }
#endif
}

TEST(wrong_shapes, are_a_status_and_not_the_end_of_the_process) {
    if (!plugin_expected()) GTEST_SKIP() << "oneDNN 3.13 ends the process here";
    const client_select what{{3, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}};
    EXPECT_EQ(status_of([&] { compile(what); }), dnnl_invalid_shape);
}

TEST(execution, may_write_over_the_reported_source) {
    const client_select what{{64, 1}, {64, 100}, {64, 100}, {64, 100}};
    if (!runs_here(what)) GTEST_SKIP() << "this oneDNN does not support it alone";
    const auto compiled = compile(what);
    const auto pairs = compiled.get_inplace_ports();
    if (plugin_expected()) {
        ASSERT_EQ(pairs.size(), 1U);
    }
    if (pairs.empty()) GTEST_SKIP() << "oneDNN reports no in-place pair";
    auto data = random_buffers(what, 5, plugin_expected());
    const auto wanted = expected(what, data);
    auto& shared = pairs.front().first == 1 ? data.src_0 : data.src_1;
    const auto inputs = what.inputs();
    contract::execute(compiled,
                      {{inputs[0], data.cond.data()},
                       {inputs[1], data.src_0.data()},
                       {inputs[2], data.src_1.data()}},
                      {{what.output(), shared.data()}});
    EXPECT_EQ(shared, wanted);
}

TEST(execution, of_one_compiled_partition_by_many_threads) {
    const client_select what{{1, 1, 64, 64}, {8, 4, 64, 64}, {1}, {8, 4, 64, 64}};
    if (!runs_here(what)) GTEST_SKIP() << "this oneDNN does not support it alone";
    if (!plugin_expected()) GTEST_SKIP() << "a second of reference code";
    const auto compiled = compile(what);
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; ++seed)
        threads.emplace_back([&, seed] {
            auto data = random_buffers(what, seed, true);
            const auto wanted = expected(what, data);
            for (int repeat = 0; repeat < 20; ++repeat) {
                std::fill(data.dst.begin(), data.dst.end(), std::uint8_t{0});
                execute(compiled, what, data);
                if (data.dst != wanted) ++wrong;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST(compiled_partition, is_what_was_compiled_last) {
    if (!plugin_expected()) GTEST_SKIP() << "what oneDNN makes of this is its own";
    const client_select small{{4}, {3, 4}, {3, 4}, {3, 4}};
    const client_select large{{50, 1}, {50, 60}, {60}, {50, 60}};
    const auto compiled = compile(small);
    for (const client_select& what : {large, small}) {
        ASSERT_NO_FATAL_FAILURE(compile_again(compiled, what));
        auto data = random_buffers(what, 11, true);
        execute(compiled, what, data);
        EXPECT_EQ(data.dst, expected(what, data));
    }
}

TEST(compiled_partition, outlives_graph_and_partition) {
    const client_select what{{4}, {3, 4}, {3, 4}, {3, 4}};
    if (!runs_here(what)) GTEST_SKIP() << "this oneDNN does not support it alone";
    std::vector<dnnl::graph::compiled_partition> kept;
    for (int i = 0; i < 200; ++i) { // addresses are reused
        kept.push_back(compile(what));
        if (kept.size() > 50) kept.erase(kept.begin(), kept.begin() + 25);
    }
    for (const auto& compiled : kept) {
        auto data = random_buffers(what, 9, plugin_expected());
        execute(compiled, what, data);
        ASSERT_EQ(data.dst, expected(what, data));
    }
}

} // namespace
} // namespace maskwise::contract
