// What a call costs besides the bytes: running a compiled plan on small tensors, finding a known
// plan, compiling a new one.

#include "exec/run_select.hpp"
#include "plan/select_plan.hpp"

#include <benchmark/benchmark.h>

#include <limits>
#include <vector>

namespace maskwise::bench {
namespace {

select_desc same_shapes(const dims& shape) {
    return {dense_desc(data_type::boolean, shape), dense_desc(data_type::f32, shape),
            dense_desc(data_type::f32, shape), dense_desc(data_type::f32, shape)};
}

void run_calls(benchmark::State& state, const select_desc& desc, std::int64_t n) {
    const auto plan = make_select_plan(desc);
    const std::vector<unsigned char> cond(static_cast<std::size_t>(n), 1);
    const std::vector<float> src_0(cond.size()), src_1(cond.size());
    std::vector<float> dst(cond.size());
    for ([[maybe_unused]] auto _ : state) {
        run_select(*plan, cond.data(), src_0.data(), src_1.data(), dst.data());
        benchmark::ClobberMemory();
    }
}

void run_small(benchmark::State& state) {
    const std::int64_t n = state.range(0);
    run_calls(state, same_shapes({n}), n);
    state.SetBytesProcessed(state.iterations() * n * 13);
}
BENCHMARK(run_small)->RangeMultiplier(4)->Range(1, 1 << 20)->UseRealTime();

// cond {n,1} onto {n,3}: short rows, packed.
void run_small_packed(benchmark::State& state) {
    const std::int64_t n = state.range(0);
    select_desc desc = same_shapes({n, 3});
    desc.cond = dense_desc(data_type::boolean, {n, 1});
    run_calls(state, desc, 3 * n);
}
BENCHMARK(run_small_packed)->RangeMultiplier(4)->Range(4, 1 << 14)->UseRealTime();

void find_known_plan(benchmark::State& state) {
    const select_desc desc = same_shapes({16, 16, 256, 256});
    for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(make_select_plan(desc));
}
BENCHMARK(find_known_plan);

void compile_new(benchmark::State& state, const select_desc& desc) {
    constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
    for ([[maybe_unused]] auto _ : state)
        benchmark::DoNotOptimize(build_plan(desc, active_isa(), never));
}

void compile_new_plan(benchmark::State& state) {
    select_desc desc = same_shapes({16, 16, 256, 256});
    desc.cond = dense_desc(data_type::boolean, {256, 256});
    compile_new(state, desc);
}
BENCHMARK(compile_new_plan);

// Short rows of six dimensions with two permuted sources: the most offsets a plan can have.
void compile_new_packed_plan(benchmark::State& state) {
    const dims shape{64, 4, 6, 5, 7, 3};
    select_desc desc = same_shapes(shape);
    desc.cond = dense_desc(data_type::boolean, {64, 1, 6, 1, 7, 1});
    std::int64_t stride = 4;
    for (int d = 0; d < shape.rank(); ++d) {
        desc.src_0.strides_bytes[d] = stride;
        desc.src_1.strides_bytes[d] = stride;
        stride *= shape[d];
    }
    compile_new(state, desc);
}
BENCHMARK(compile_new_packed_plan);

} // namespace
} // namespace maskwise::bench

BENCHMARK_MAIN();
