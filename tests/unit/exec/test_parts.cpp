#include "exec/parts.hpp"
#include "exec/tile_walk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

namespace maskwise {
namespace {

constexpr std::int64_t threads = 16;

struct part_case {
    const char* name;
    select_desc desc;
    bool is_boxed = false; // tiles are boxes, not rows
};

tensor_desc transposed(data_type type, const dims& shape) {
    tensor_desc desc = dense_desc(type, shape);
    const auto width = static_cast<std::int64_t>(width_bytes(type));
    desc.strides_bytes = {width, shape[0] * width};
    return desc;
}

tensor_desc padded(data_type type, const dims& shape, std::int64_t elements) {
    tensor_desc desc = dense_desc(type, shape);
    desc.strides_bytes[0] += elements * desc.strides_bytes[1];
    return desc;
}

std::vector<part_case> descs() {
    const auto mask = [](const dims& shape) { return dense_desc(data_type::boolean, shape); };
    const auto f32 = [](const dims& shape) { return dense_desc(data_type::f32, shape); };
    const dims flat{1 << 19}, heads{8, 256, 256}, odd{500, 1003}, pixels{170000, 3};
    const tensor_desc bytes = dense_desc(data_type::i8, {1 << 21});
    const tensor_desc transposed_odd = transposed(data_type::f32, odd);
    return {{"contiguous", {mask(flat), f32(flat), f32(flat), f32(flat)}},
            {"1-byte elements", {mask({1 << 21}), bytes, bytes, bytes}},
            {"mask shared by heads", {mask({256, 256}), f32(heads), f32({}), f32(heads)}},
            {"one cond per row", {mask({500, 1}), f32(odd), f32(odd), f32(odd)}},
            {"padded dst", {mask(odd), f32(odd), f32(odd), padded(data_type::f32, odd, 5)}},
            {"src_1 transposed", {mask(odd), f32(odd), transposed_odd, f32(odd)}, true},
            {"dst transposed", {mask(odd), f32(odd), f32(odd), transposed_odd}, true},
            {"rows of 3 elements", {mask({170000, 1}), f32(pixels), f32(pixels), f32(pixels)}}};
}

std::vector<std::pair<std::int64_t, std::int64_t>> parts_of(const select_plan& plan) {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    std::mutex mutex;
    const std::int64_t parts = std::min(plan.tiles, threads * parts_per_thread);
    run_tiles_in_parts(plan.tiles, parts, [&](std::int64_t first, std::int64_t last) {
        const std::lock_guard lock(mutex);
        ranges.emplace_back(first, last);
    });
    return ranges;
}

// For each cache line of dst, counts the parts that write to the line. dst begins `offset` bytes
// into a line.
std::vector<int> writers_of_lines(const part_case& d, std::size_t offset) {
    const auto plan = build_plan(d.desc, active_isa(), 0);
    const auto bytes_of = [](const tensor_desc& t) {
        std::int64_t last = static_cast<std::int64_t>(width_bytes(t.type));
        for (int i = 0; i < t.extents.rank(); ++i) last += (t.extents[i] - 1) * t.strides_bytes[i];
        return static_cast<std::size_t>(last);
    };
    const std::vector<std::byte> cond(bytes_of(d.desc.cond), std::byte{1});
    const std::vector<std::byte> src_0(bytes_of(d.desc.src_0), std::byte{1});
    const std::vector<std::byte> src_1(bytes_of(d.desc.src_1), std::byte{1});
    const std::size_t bytes = offset + bytes_of(d.desc.dst), lines = (bytes + 63) / 64;
    std::vector<std::byte> memory(64 * (lines + 1));
    std::byte* const dst =
        memory.data() + (0 - reinterpret_cast<std::uintptr_t>(memory.data())) % 64;
    std::vector<int> writers(lines);
    const std::vector<std::byte> untouched(64);
    for (const auto& [first, last] : parts_of(*plan)) {
        std::fill(memory.begin(), memory.end(), std::byte{0});
        run_tiles(*plan, plan->run, {cond.data(), src_0.data(), src_1.data(), dst + offset}, first,
                  last);
        for (std::size_t l = 0; l < lines; ++l)
            writers[l] += std::memcmp(dst + 64 * l, untouched.data(), 64) != 0;
    }
    return writers;
}

// If two parts write a line, the line moves between cores. Boxes share many lines, because each row
// of a box may end within a line. Still, no line has three writers.
TEST(run_tiles_in_parts, adjacent_parts_of_rows_share_at_most_one_line) {
    for (const part_case& d : descs())
        for (const std::size_t offset : {std::size_t{0}, std::size_t{20}}) {
            const std::vector<int> writers = writers_of_lines(d, offset);
            const auto shared = std::ranges::count_if(writers, [](int n) { return n > 1; });
            EXPECT_EQ(std::ranges::count(writers, 0), 0) << d.name;
            EXPECT_LE(*std::ranges::max_element(writers), 2) << d.name;
            if (d.is_boxed) continue;
            EXPECT_LT(shared, offset == 0 ? 1 : threads * parts_per_thread) << d.name;
        }
}

// Work of at least 1 MiB and two tiles runs on several threads. Each thread gets up to four parts.
TEST(choose_parts, wakes_threads_only_for_enough_work) {
    const auto on = [](int count, std::int64_t bytes, std::int64_t tiles) {
        const parallel_loop loop{count, [](std::int64_t, const auto&) {}};
        return choose_parts(bytes, parallel_from_bytes, tiles, &loop);
    };
    EXPECT_EQ(on(16, (1 << 20) - 1, 1000), 1);
    EXPECT_EQ(on(16, 1 << 20, 1000), 64);
    EXPECT_EQ(on(16, 1 << 20, 10), 10);
    EXPECT_EQ(on(16, 1 << 20, 2), 2);
    EXPECT_EQ(on(16, 1 << 20, 1), 1);
    EXPECT_EQ(on(2, 1 << 20, 1000), 8);
    EXPECT_EQ(on(1, 1 << 20, 1000), 1);
    const int available = available_threads();
    EXPECT_EQ(choose_parts(1 << 20, parallel_from_bytes, 1000),
              available < 2 ? 1 : std::min(1000, 4 * available));
}

} // namespace
} // namespace maskwise
