// Measures unmasked attention, by shape and type, as a share of the machine's limit.
// Example: bench_attention --benchmark_filter='kept/.*'
// `flops` counts two operations per multiply-add. `share` is `flops` divided by the peak rate of
// the same number of threads without memory accesses. In cases `thin`, `share` is the rate of
// reading keys and values divided by memory bandwidth.
//
// kept/<type>/<depth>/<threads>: 12 heads of 1024 queries and keys, on 1, 2, 4 ... all threads.
// small/<type>/<shape>/<threads>: as many queries as keys, 1 x heads x queries x depth.
// 1x1x1x64 measures the cost of a call.
// thin/<type>/<shape>/<queries>: few queries and many keys, heads x keys x depth.
// 32over8 means 32 query heads and 8 key heads.

#include "kernels/peak.hpp"

#include "attention/run_attention.hpp"
#include "exec/parts.hpp"
#include "limit/limit_kernel.hpp"

#include <benchmark/benchmark.h>
#include <tbb/task_arena.h>

#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace maskwise::bench {
namespace {

struct shape {
    std::int64_t heads = 12, key_heads = 12, queries = 1024, keys = 1024, depth = 64;
    data_type type = data_type::f32;

    std::int64_t key_bytes() const {
        return key_heads * keys * depth * (type == data_type::f32 ? 4 : 2);
    }
};

// `count` random elements: floats, or bf16 values, two in each float.
std::vector<float> numbers(std::int64_t count, data_type type) {
    static std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(static_cast<std::size_t>(type == data_type::f32 ? count : count / 2));
    for (float& value : values) value = uniform(random);
    if (type == data_type::f32) return values;
    for (float& value : values) {
        const auto upper = std::bit_cast<std::uint32_t>(value) & 0xFFFF0000;
        value = std::bit_cast<float>(upper | upper >> 16);
    }
    return values;
}

struct problem {
    // Uses `keys` as the values, too. `keys` is empty if the caller passes its own keys and values
    // to run_attention.
    problem(const shape& sizes, std::vector<float> keys)
        : query(numbers(sizes.heads * sizes.queries * sizes.depth, sizes.type)),
          key(std::move(keys)), value(key), dst(query.size()) {
        desc.query = desc.dst = {sizes.type, {1, sizes.heads, sizes.queries, sizes.depth}};
        desc.key = desc.value = {sizes.type, {1, sizes.key_heads, sizes.keys, sizes.depth}};
        desc.grouped_queries = sizes.heads != sizes.key_heads;
        products =
            2.0 * static_cast<double>(sizes.queries * sizes.keys * sizes.heads * sizes.depth);
    }
    attention_operands operands() {
        return {query.data(), key.data(), value.data(), nullptr, nullptr, dst.data()};
    }

    attention_desc desc;
    std::vector<float> query, key, value, dst;
    double products = 0; // multiply-adds
};

double peak(bool in_pairs, int threads) {
    static std::map<std::pair<bool, int>, double> known;
    double& cached = known[{in_pairs, threads}];
    if (cached == 0) cached = measured_peak(active_isa(), in_pairs, threads);
    return cached;
}

// Larger than the caches, because a model's weights evict the keys between two tokens.
constexpr std::int64_t cold_bytes = 512 << 20;

// Keys and values outside the caches. The bytes serve as f32 and as bf16, because each half of a
// float is a bf16. The memory bandwidth is the rate at which the fastest limit_variant reads
// the bytes.
class cold_memory {
public:
    cold_memory() {
        double best = 0;
        for (const limit_variant& variant : limit_variants(available_threads()))
            if (const double rate = std::max(rate_of(variant), rate_of(variant)); rate > best) {
                best = rate;
                variant_ = &variant;
            }
    }
    // Measures bytes per second. Callers measure right before and right after their timed calls,
    // because other programs share the memory bandwidth.
    double rate() const { return rate_of(*variant_); }
    const std::byte* bytes() const { return pass_.from; }

private:
    template <typename Value>
    static std::byte* aligned(std::vector<Value>& memory) {
        const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
        return reinterpret_cast<std::byte*>((address + 63) / 64 * 64);
    }
    double rate_of(const limit_variant& variant) const {
        const auto begin = std::chrono::steady_clock::now();
        run_limit(pass_, variant, available_threads());
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        return static_cast<double>(cold_bytes) / took.count();
    }

    std::vector<float> from_ = numbers(cold_bytes / 2 + 2 * limit_slack_bytes, data_type::bf16);
    std::vector<double> to_ = std::vector<double>(cold_bytes / 8 / 256 + 8);
    limit_pass pass_{aligned(from_), aligned(to_), cold_bytes, cold_bytes / 256};
    const limit_variant* variant_ = nullptr;
};

void attend(benchmark::State& state, problem& data, int threads) {
    const auto plan = make_tile_plan(data.desc, active_isa());
    tbb::task_arena arena(threads);
    arena.execute([&] {
        for ([[maybe_unused]] auto _ : state) {
            run_attention(*plan, data.operands(), plan->numbers, nullptr);
            benchmark::ClobberMemory();
        }
    });
    using benchmark::Counter;
    state.counters["flops"] = Counter(2 * data.products, Counter::kIsIterationInvariantRate);
    const double of_peak = peak(plan->in_pairs, threads);
    if (of_peak == 0) return; // peak() does not measure bf16 on ARM
    state.counters["peak"] = of_peak;
    state.counters["products"] = 2 * data.products / of_peak; // seconds at the peak
    state.counters["share"] =
        Counter(2 * data.products / of_peak, Counter::kIsIterationInvariantRate);
}

void run_kept(benchmark::State& state, const shape& sizes, int threads) {
    problem data(sizes, numbers(sizes.key_heads * sizes.keys * sizes.depth, sizes.type));
    attend(state, data, threads);
}

void run_thin(benchmark::State& state, const shape& sizes) {
    static const cold_memory memory;
    problem data(sizes, {});
    attention_operands operands = data.operands();
    const auto plan = make_tile_plan(data.desc, active_isa());
    double limit = memory.rate();
    std::int64_t next = 0;
    for ([[maybe_unused]] auto _ : state) {
        if (next + 2 * sizes.key_bytes() > cold_bytes) next = 0;
        operands.key = memory.bytes() + next;
        operands.value = memory.bytes() + next + sizes.key_bytes();
        next += 2 * sizes.key_bytes();
        run_attention(*plan, operands, nullptr);
        benchmark::ClobberMemory();
    }
    using benchmark::Counter;
    const auto bytes = static_cast<double>(2 * sizes.key_bytes());
    limit = std::max(limit, memory.rate());
    state.counters["read"] = Counter(bytes, Counter::kIsIterationInvariantRate);
    state.counters["memory"] = limit;
    state.counters["share"] = Counter(bytes / limit, Counter::kIsIterationInvariantRate);
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMillisecond)->UseRealTime();
}

constexpr std::pair<const char*, data_type> types[] = {{"f32", data_type::f32},
                                                       {"bf16", data_type::bf16}};

// Adds the case for 1, 2, 4 ... threads, and for all threads.
void add_whole(const std::string& name, const shape& sizes) {
    const int most = available_threads();
    for (int threads = 1; threads < 2 * most; threads *= 2)
        add(name + "/" + std::to_string(std::min(threads, most)),
            [=](benchmark::State& state) { run_kept(state, sizes, std::min(threads, most)); });
}

void add_kept() {
    for (const auto& [name, type] : types)
        for (const std::int64_t depth : {64, 128, 256})
            add_whole("kept/" + std::string(name) + "/" + std::to_string(depth),
                      {.depth = depth, .type = type});
}

void add_small() {
    const std::pair<std::int64_t, std::int64_t> sizes[] = {
        {1, 1}, {1, 32}, {12, 32}, {12, 64}, {12, 128}};
    for (const auto& [name, type] : types)
        for (const auto& [heads, length] : sizes)
            add_whole("small/" + std::string(name) + "/1x" + std::to_string(heads) + "x" +
                          std::to_string(length) + "x64",
                      {heads, heads, length, length, 64, type});
}

void add_thin() {
    const std::pair<const char*, shape> shapes[] = {
        {"12x4096x64", {12, 12, 1, 4096, 64, data_type::f32}},
        {"32over8x4096x128", {32, 8, 1, 4096, 128, data_type::f32}},
        {"32over8x2048x128", {32, 8, 1, 2048, 128, data_type::f32}}};
    for (const auto& [type_name, type] : types)
        for (const auto& [name, sizes] : shapes)
            for (std::int64_t queries = 1; queries <= 64; ++queries) {
                shape thin = sizes;
                thin.type = type;
                thin.queries = queries;
                add("thin/" + std::string(type_name) + "/" + name + "/" + std::to_string(queries),
                    [=](benchmark::State& state) { run_thin(state, thin); });
            }
}

const bool registered = [] {
    add_kept();
    add_small();
    add_thin();
    return true;
}();

} // namespace
} // namespace maskwise::bench

BENCHMARK_MAIN();
