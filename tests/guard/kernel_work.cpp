// Counts the instructions of a few AVX2 and AVX-512 kernels. guard.py compares the lines with
// instructions.txt: "<instruction set> <kernel> <mask>: <instructions>". For an instruction set
// that the CPU lacks, prints "# <instruction set> is not supported".

#include "instruction_counter.hpp"

#include "kernel/kernel_table.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace maskwise {
namespace {

constexpr std::int64_t rows = 2, columns = 4096; // few elements, because each instruction traps

enum class mask { random, all_true };

struct work {
    select_key key;
    mask pattern;
};

void fill_cond(std::vector<std::byte>& cond, mask pattern) {
    std::uint32_t state = 1;
    for (std::byte& c : cond) {
        state = state * 1664525U + 1013904223U;
        c = static_cast<std::byte>(pattern == mask::all_true ? 1 : state >> 31);
    }
}

void run(isa target, const work& w) {
    const auto count = static_cast<std::size_t>(rows * columns);
    const std::int64_t row_bytes = columns * w.key.width_bytes;
    std::vector<std::byte> cond(count), src_0(count * 16), src_1(count * 16), dst(count * 16 + 64);
    fill_cond(cond, w.pattern);
    const auto at_line = reinterpret_cast<std::uintptr_t>(dst.data()) % 64;
    const auto stride = [row_bytes](column_class c) {
        return c == column_class::unit ? row_bytes : std::int64_t{0};
    };
    const select_tile tile{cond.data(),
                           src_0.data(),
                           src_1.data(),
                           dst.data() + (64 - at_line) % 64,
                           rows,
                           columns,
                           w.key.cond == column_class::unit ? columns : 1,
                           stride(w.key.src_0),
                           stride(w.key.src_1),
                           row_bytes};
    const select_fn kernel = find_kernel(kernel_table_for(target).selects, w.key).run;
    kernel(tile); // does one-time work before the count
    guard::start_counting();
    kernel(tile);
    const long instructions = guard::stop_counting();
    const std::string name =
        to_string(w.key) + (w.pattern == mask::random ? " random" : " all-true");
    std::printf("%s %s: %ld\n", std::string(to_string(target)).c_str(), name.c_str(), instructions);
}

void run_all(isa target) {
    constexpr auto unit = column_class::unit, zero = column_class::zero;
    constexpr auto plain = store_policy::plain, stream = store_policy::stream;
    for (const mask pattern : {mask::random, mask::all_true}) {
        for (const int width : {1, 2, 4, 8, 16})
            run(target, {{width, unit, unit, unit, plain}, pattern});
        run(target, {{4, unit, zero, unit, plain}, pattern});
        run(target, {{4, unit, unit, zero, plain}, pattern});
        run(target, {{4, zero, unit, unit, plain}, pattern});
        run(target, {{4, unit, unit, unit, stream}, pattern});
        run(target, {{2, unit, unit, zero, stream}, pattern});
    }
}

} // namespace
} // namespace maskwise

int main() {
    using namespace maskwise;
    const auto supported = supported_isas(native_cpu());
    for (const isa target : {isa::avx2, isa::avx512})
        if (std::find(supported.begin(), supported.end(), target) != supported.end())
            run_all(target);
        else
            std::printf("# %s is not supported\n", std::string(to_string(target)).c_str());
}
