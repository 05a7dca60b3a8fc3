// Measures the bytes per second of every Select and packing kernel on every instruction set of this
// machine. Select kernels run on operands in L1, L2, L3 and memory. The number after a Select
// kernel's name is the total size of the operands in bytes.
// Example: bench_kernels --benchmark_filter='avx512/select_x32_uuu_plain/.*'

#include "kernel/kernel_table.hpp"

#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <vector>

namespace maskwise::bench {
namespace {

// The sizes fit an L1 of 48 KB, an L2 of 512 KB, an L3 of 8 MB, and memory.
constexpr std::int64_t sizes_bytes[] = {36 << 10, 400 << 10, 4 << 20, 256 << 20};

struct operands {
    explicit operands(std::int64_t bytes)
        : cond(static_cast<std::size_t>(bytes)), src_0(cond.size()), src_1(cond.size()),
          dst(cond.size() + 64) {
        std::mt19937_64 random(1);
        for (std::byte& byte : cond) byte = static_cast<std::byte>(random() & 1);
    }
    std::byte* aligned_dst() {
        void* address = dst.data();
        std::size_t space = dst.size();
        return static_cast<std::byte*>(std::align(64, dst.size() - 64, address, space));
    }
    std::vector<std::byte> cond, src_0, src_1, dst;
};

std::int64_t read_bytes(column_class columns, std::int64_t width) {
    return columns == column_class::unit ? width : 0;
}

void run_select_kernel(benchmark::State& state, const select_kernel& kernel) {
    const select_key& key = kernel.key;
    const std::int64_t moved = read_bytes(key.cond, 1) + read_bytes(key.src_0, key.width_bytes) +
                               read_bytes(key.src_1, key.width_bytes) + key.width_bytes;
    const std::int64_t n = state.range(0) / moved;
    operands data(n * key.width_bytes);
    const select_tile tile{data.cond.data(),
                           data.src_0.data(),
                           data.src_1.data(),
                           data.aligned_dst(),
                           1,
                           n,
                           0,
                           0,
                           0,
                           0};
    for ([[maybe_unused]] auto _ : state) {
        kernel.run(tile);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * n * moved);
}

// Packs 64 groups of 64 items. For access_kind::transpose, an item is a row of a dense matrix. Else
// items are two cache lines apart.
void run_pack_kernel(benchmark::State& state, const pack_kernel& kernel) {
    constexpr std::int64_t items = 64, groups = 64;
    const std::int64_t unit = kernel.key.unit_bytes;
    const bool transposes = kernel.key.kind == access_kind::transpose;
    const std::int64_t item_space = transposes ? groups * unit : 128;
    std::vector<std::byte> strided(static_cast<std::size_t>(groups * items * item_space));
    std::vector<std::byte> buffer(
        static_cast<std::size_t>(items * groups * unit + pack_slack_bytes));
    pack_layout layout;
    layout.items = items;
    layout.groups = groups;
    layout.item_bytes = unit;
    layout.group_bytes = transposes ? unit : items * item_space;
    layout.buffer_group_bytes = items * unit;
    layout.block_offsets = layout.block_places = {0};
    layout.even_items = true;
    for (std::int64_t i = 0; i < items; ++i)
        layout.offsets.push_back(static_cast<std::int32_t>(i * item_space));
    for (std::int64_t g = 0; g < groups; ++g)
        layout.group_places.push_back(static_cast<std::int32_t>(g * items * unit));
    const pack_tile tile{strided.data(), buffer.data(), layout, false, {}};
    for ([[maybe_unused]] auto _ : state) {
        kernel.run(tile);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * items * groups * unit * 2);
}

void register_table(const kernel_table& table) {
    const std::string target(to_string(table.target));
    for (const select_kernel& kernel : table.selects)
        for (const std::int64_t bytes : sizes_bytes)
            benchmark::RegisterBenchmark((target + '/' + to_string(kernel.key)).c_str(),
                                         run_select_kernel, kernel)
                ->Arg(bytes);
    for (const pack_kernel& kernel : table.packs)
        benchmark::RegisterBenchmark((target + '/' + to_string(kernel.key)).c_str(),
                                     run_pack_kernel, kernel);
}

} // namespace
} // namespace maskwise::bench

int main(int argc, char** argv) {
    for (const maskwise::isa target : maskwise::supported_isas(maskwise::native_cpu()))
        maskwise::bench::register_table(maskwise::kernel_table_for(target));
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
