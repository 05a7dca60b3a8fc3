// Attention by mask and length, batch 1, 12 heads, depth 64, f32: bench_attention
// --benchmark_filter='causal/.*'. Rates count the multiply-adds of kept scores alone, two
// operations each: what the mask throws away is no work done. "product" is one product of a panel
// in L1, the most that any tile can reach on one thread.

#include "attention/run_attention.hpp"
#include "base/cpu.hpp"

#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <vector>

namespace maskwise::bench {
namespace {

constexpr std::int64_t heads = 12, depth = 64;

enum class mask_kind { none, causal, causal_cond, padding, blocks };

// Padding masks the last quarter; of the blocks of 64 every eighth is kept.
bool is_kept(mask_kind kind, std::int64_t row, std::int64_t key, std::int64_t length) {
    switch (kind) {
    case mask_kind::none:
        return true;
    case mask_kind::causal:
    case mask_kind::causal_cond:
        return key <= row;
    case mask_kind::padding:
        return key < length * 3 / 4;
    case mask_kind::blocks:
        return (row / 64 + key / 64) % 8 == 0;
    }
    return false;
}

struct problem {
    problem(mask_kind kind, std::int64_t length)
        : values(static_cast<std::size_t>(heads * length * depth)), dst(values) {
        std::mt19937 random(1);
        std::normal_distribution<float> normal;
        for (auto& value : values) value = normal(random);
        desc.query = desc.key = desc.value = {data_type::f32, {1, heads, length, depth}};
        if (kind == mask_kind::causal) desc.causal = causal_boundary::top_left;
        const std::int64_t rows = kind == mask_kind::padding ? 1 : length;
        const bool has_cond = kind != mask_kind::none && kind != mask_kind::causal;
        if (has_cond) desc.cond = {data_type::boolean, {rows, length}};
        for (std::int64_t row = 0; row < length; ++row)
            for (std::int64_t key = 0; key < length; ++key) {
                kept += is_kept(kind, row, key, length);
                if (has_cond && row < rows) cond.push_back(is_kept(kind, row, key, length) ? 1 : 0);
            }
    }
    attention_operands operands() {
        return {values.data(), values.data(), values.data(), cond.data(), nullptr, dst.data()};
    }

    attention_desc desc;
    std::vector<float> values, dst;
    std::vector<std::uint8_t> cond;
    std::int64_t kept = 0;
};

void run_length(benchmark::State& state, mask_kind kind) {
    problem data(kind, state.range(0));
    const auto plan = make_attention_plan(data.desc, active_isa());
    for ([[maybe_unused]] auto _ : state) {
        run_attention(*plan, data.operands(), nullptr);
        benchmark::ClobberMemory();
    }
    const auto products = static_cast<double>(data.kept * heads * 2 * depth);
    state.counters["flops"] =
        benchmark::Counter(2 * products, benchmark::Counter::kIsIterationInvariantRate);
}

// One query, all keys.
void run_decode(benchmark::State& state) {
    problem data(mask_kind::padding, state.range(0));
    data.desc.query.extents = {1, heads, 1, depth};
    const auto plan = make_attention_plan(data.desc, active_isa());
    for ([[maybe_unused]] auto _ : state) {
        run_attention(*plan, data.operands(), nullptr);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * heads * state.range(0) * 3 / 4 * depth * 2 * 4);
}

void run_product(benchmark::State& state) {
    const attention_kernels& kernels = kernel_table_for(active_isa()).attention;
    const std::int64_t panel = kernels.panel(), keys = 64;
    const auto floats = [](std::int64_t count) {
        return std::vector<float>(static_cast<std::size_t>(count), 1.0F);
    };
    std::vector<float> a = floats(keys * depth), b = floats(depth * panel),
                       c = floats(keys * panel);
    const panel_product product{reinterpret_cast<const std::byte*>(a.data()),
                                depth * 4,
                                4,
                                keys,
                                depth,
                                b.data(),
                                c.data(),
                                nullptr,
                                panel};
    for ([[maybe_unused]] auto _ : state) {
        kernels.multiply(product);
        benchmark::ClobberMemory();
    }
    state.counters["flops"] = benchmark::Counter(2.0 * static_cast<double>(keys * depth * panel),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

const bool registered = [] {
    benchmark::RegisterBenchmark("product", run_product);
    const std::pair<const char*, mask_kind> kinds[] = {{"none", mask_kind::none},
                                                       {"causal", mask_kind::causal},
                                                       {"causal_cond", mask_kind::causal_cond},
                                                       {"padding", mask_kind::padding},
                                                       {"blocks", mask_kind::blocks}};
    for (const auto& [name, kind] : kinds)
        benchmark::RegisterBenchmark(name, run_length, kind)
            ->RangeMultiplier(2)
            ->Range(512, 4096)
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime();
    benchmark::RegisterBenchmark("decode", run_decode)
        ->Arg(4096)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
    return true;
}();

} // namespace
} // namespace maskwise::bench

BENCHMARK_MAIN();
