// Runs a few kernels of the AVX2 table under callgrind, which writes one profile of each: what the
// test of instruction counts compares with instructions.txt. Without callgrind it only runs them.

#include "kernel/kernel_table.hpp"

#include <valgrind/callgrind.h>

#include <cstdio>
#include <string>
#include <vector>

namespace maskwise {
namespace {

constexpr std::int64_t rows = 8, columns = 4096;

enum class mask { random, all_true };

struct work {
    select_key key;
    mask of;
};

void fill_cond(std::vector<std::byte>& cond, mask of) {
    std::uint32_t state = 1;
    for (std::byte& c : cond) {
        state = state * 1664525U + 1013904223U;
        c = static_cast<std::byte>(of == mask::all_true ? 1 : state >> 31);
    }
}

void run(const work& w) {
    const auto count = static_cast<std::size_t>(rows * columns);
    const std::int64_t row_bytes = columns * w.key.width_bytes;
    std::vector<std::byte> cond(count), src_0(count * 16), src_1(count * 16), dst(count * 16 + 64);
    fill_cond(cond, w.of);
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
    const select_fn kernel = find_select(kernel_table_for(isa::avx2), w.key).run;
    kernel(tile); // what happens once is not counted
    const std::string name = to_string(w.key) + (w.of == mask::random ? " random" : " all-true");
    CALLGRIND_ZERO_STATS;
    kernel(tile);
    CALLGRIND_DUMP_STATS_AT(name.c_str());
    std::printf("%s\n", name.c_str());
}

} // namespace
} // namespace maskwise

int main() {
    using namespace maskwise;
    constexpr auto unit = column_class::unit, zero = column_class::zero;
    constexpr auto plain = store_policy::plain, stream = store_policy::stream;
    for (const mask of : {mask::random, mask::all_true}) {
        for (const int width : {1, 2, 4, 8, 16}) run({{width, unit, unit, unit, plain}, of});
        run({{4, unit, zero, unit, plain}, of});
        run({{4, unit, unit, zero, plain}, of});
        run({{4, zero, unit, unit, plain}, of});
        run({{4, unit, unit, unit, stream}, of});
        run({{2, unit, unit, zero, stream}, of});
    }
}
