// Compares every packing kernel with plain loops, on every instruction set of this machine.

#include "kernel_cases.hpp"

#include "support/case_generator.hpp"
#include "support/guarded_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace maskwise::test {
namespace {

// A random packing job.
struct pack_job : pack_layout {
    pack_job(generator& random, const pack_key& layout) : key(layout) {
        const std::int64_t unit = key.unit_bytes;
        transposes = key.kind == access_kind::transpose;
        item_bytes = draw_item_bytes(random);
        items = one_in(random, 3) ? draw(random, 1, 4) : draw(random, 1, 40);
        groups = one_in(random, 3) ? draw(random, 1, 4) : draw(random, 1, 40);
        // Kernels transpose 32 one-byte items at once, so some jobs have more items.
        if (transposes && one_in(random, 4)) items = draw(random, 1, 100);
        if (one_in(random, 2)) max_items = std::int64_t{4} << draw(random, 0, 3);
        blocks = draw(random, 1, 3);
        const std::int64_t source_bytes = key.kind == access_kind::splat ? unit : item_bytes;
        const bool dense = one_in(random, 3);
        const std::int64_t item_space =
            (transposes ? groups * unit : source_bytes) + (dense ? 0 : draw(random, 0, 20));
        group_bytes = transposes ? unit : items * item_space + draw(random, 0, 9);
        for (std::int64_t i = 0; i < items; ++i)
            offsets.push_back(static_cast<std::int32_t>(i * item_space));
        even_items = dense || one_in(random, 2);
        if (!even_items) std::shuffle(offsets.begin(), offsets.end(), random);
        if (key.kind == access_kind::step) space_items(random);
        const std::int64_t block_space =
            items * item_space + (transposes ? 0 : (groups - 1) * group_bytes);
        for (std::int64_t b = 0; b < blocks; ++b)
            block_offsets.push_back(static_cast<std::int32_t>(b * block_space));
        const auto [lowest, highest] = std::minmax_element(offsets.begin(), offsets.end());
        first_bytes = std::max(0, -*lowest);
        strided_bytes = first_bytes + block_offsets.back() + std::max(0, *highest) +
                        (groups - 1) * group_bytes + source_bytes;
        buffer_group_bytes = items * item_bytes;
        buffer_bytes = blocks * groups * buffer_group_bytes;
        place_groups(random);
        if (key.kind == access_kind::gather && one_in(random, 2)) place_windows();
    }

    // Spaces all items evenly, at ascending or descending offsets. Most steps are 1 to 5 elements,
    // which vector kernels handle. The other steps have any number of bytes. Groups overlap, so the
    // last group ends near the guard page.
    void space_items(generator& random) {
        const std::int64_t unit = key.unit_bytes;
        if (one_in(random, 2)) items = draw(random, 1, 400);
        std::int64_t step = draw(random, 1, 5) * unit;
        if (one_in(random, 4)) step = draw(random, 1, 90);
        if (one_in(random, 2)) step = -step;
        offsets.clear();
        for (std::int64_t i = 0; i < items; ++i)
            offsets.push_back(static_cast<std::int32_t>(i * step));
        if (items == 1) offsets.push_back(static_cast<std::int32_t>(step));
        group_bytes = draw(random, 0, 9);
    }

    // Places the groups in the buffer in order. A transposition may use any order.
    void place_groups(generator& random) {
        for (std::int64_t g = 0; g < groups; ++g)
            group_places.push_back(static_cast<std::int32_t>(g * buffer_group_bytes));
        for (std::int64_t b = 0; b < blocks; ++b)
            block_places.push_back(static_cast<std::int32_t>(b * groups * buffer_group_bytes));
        if (!transposes || one_in(random, 2)) return;
        std::shuffle(group_places.begin(), group_places.end(), random);
        std::shuffle(block_places.begin(), block_places.end(), random);
        buffer_group_bytes = 0;
    }

    // Splits the buffer into registers of 16 bytes. Covers the source bytes of each register by
    // windows of 16 bytes. Uses no windows if a register needs more than max_windows. A window may
    // end past the last item.
    void place_windows() {
        const std::int64_t bytes = items * item_bytes;
        if (bytes < window_bytes) return;
        for (std::int64_t offset = 0; offset < bytes; offset += window_bytes)
            windows.count =
                std::max(windows.count, add_register(std::min(offset, bytes - window_bytes)));
        if (windows.count > max_windows) {
            windows.count = 0;
            return;
        }
        for (const auto& [first, places] : registers) {
            for (std::int64_t w = 0; w < windows.count; ++w) {
                const bool known = w < std::ssize(first);
                windows.offsets.push_back(known ? first[static_cast<std::size_t>(w)] : first[0]);
                for (const std::int32_t place : places) {
                    const std::int32_t from = place - windows.offsets.back();
                    const bool inside = known && from >= 0 && from < window_bytes;
                    windows.shuffles.push_back(static_cast<std::uint8_t>(inside ? from : 0x80));
                }
            }
        }
        strided_bytes = std::max(
            strided_bytes, block_offsets.back() + (groups - 1) * group_bytes + window_bytes +
                               *std::max_element(windows.offsets.begin(), windows.offsets.end()));
    }

    // Returns the number of windows that cover the sources of the 16 buffer bytes from `offset` on.
    std::int64_t add_register(std::int64_t offset) {
        std::vector<std::int32_t> first, places;
        for (std::int64_t b = offset; b < offset + window_bytes; ++b)
            places.push_back(offsets[static_cast<std::size_t>(b / item_bytes)] +
                             static_cast<std::int32_t>(b % item_bytes));
        std::vector<std::int32_t> sorted = places;
        std::sort(sorted.begin(), sorted.end());
        for (const std::int32_t place : sorted)
            if (first.empty() || place - first.back() >= window_bytes) first.push_back(place);
        registers.push_back({first, places});
        return std::ssize(first);
    }

    std::int64_t draw_item_bytes(generator& random) const {
        const std::int64_t unit = key.unit_bytes;
        if (transposes || key.kind == access_kind::step) return unit;
        if (key.kind == access_kind::splat) return unit * draw(random, 1, 90);
        return one_in(random, 3) ? unit : draw(random, unit, unit == 16 ? 400 : 2 * unit - 1);
    }

    pack_tile tile(std::byte* strided, std::byte* buffer) const {
        return {strided + first_bytes, buffer, *this, true, {strided, offsets}};
    }

    template <class Move>
    void for_each_item(Move&& move) const {
        for (std::int64_t b = 0; b < blocks; ++b)
            for (std::int64_t g = 0; g < groups; ++g)
                for (std::int64_t i = 0; i < items; ++i)
                    move(first_bytes + block_offsets[static_cast<std::size_t>(b)] +
                             g * group_bytes + offsets[static_cast<std::size_t>(i)],
                         block_places[static_cast<std::size_t>(b)] +
                             group_places[static_cast<std::size_t>(g)] + i * item_bytes);
    }

    void expect_item(const std::byte* from, std::byte* to) const {
        const std::int64_t unit = key.unit_bytes;
        const std::int64_t step = key.kind == access_kind::splat ? unit : item_bytes;
        for (std::int64_t offset = 0; offset < item_bytes; offset += step)
            std::memcpy(to + offset, from, static_cast<std::size_t>(step));
    }

    pack_key key;
    bool transposes = false;
    // offset of item 0 in the strided memory; other items may precede it
    std::int64_t first_bytes = 0;
    std::int64_t strided_bytes, buffer_bytes;

    struct window_register {
        std::vector<std::int32_t> first, places;
    };
    std::vector<window_register> registers;
};

void check_scatter(generator& random, const pack_job& job, pack_fn run) {
    const guarded_buffer strided(static_cast<std::size_t>(job.strided_bytes),
                                 guarded_buffer::edge::back);
    const guarded_buffer buffer(static_cast<std::size_t>(job.buffer_bytes),
                                guarded_buffer::edge::front);
    fill_random(random, strided.data(), strided.size());
    fill_random(random, buffer.data(), buffer.size());
    std::vector<std::byte> expected(strided.data(), strided.data() + strided.size());
    job.for_each_item([&](std::int64_t from, std::int64_t to) {
        std::memcpy(expected.data() + from, buffer.data() + to,
                    static_cast<std::size_t>(job.item_bytes));
    });
    run(job.tile(strided.data(), buffer.data()));
    ASSERT_EQ(std::memcmp(strided.data(), expected.data(), expected.size()), 0)
        << "items of " << job.item_bytes << " bytes";
}

void check_read(generator& random, const pack_job& job, pack_fn run) {
    const bool moves = job.key.kind == access_kind::gather || job.key.kind == access_kind::step;
    const std::int64_t slack = moves ? 0 : pack_slack_bytes;
    const auto edge = one_in(random, 2) ? guarded_buffer::edge::front : guarded_buffer::edge::back;
    const guarded_buffer strided(static_cast<std::size_t>(job.strided_bytes), edge);
    const guarded_buffer buffer(static_cast<std::size_t>(job.buffer_bytes + slack),
                                guarded_buffer::edge::back);
    fill_random(random, strided.data(), strided.size());
    std::vector<std::byte> expected(static_cast<std::size_t>(job.buffer_bytes));
    job.for_each_item([&](std::int64_t from, std::int64_t to) {
        job.expect_item(strided.data() + from, expected.data() + to);
    });
    run(job.tile(strided.data(), buffer.data()));
    ASSERT_EQ(std::memcmp(buffer.data(), expected.data(), expected.size()), 0)
        << "items of " << job.item_bytes << " bytes, " << job.items << " items, " << job.groups
        << " groups";
}

class pack_kernels : public ::testing::TestWithParam<kernel_case<pack_kernel>> {};

TEST_P(pack_kernels, match_plain_loops) {
    generator random(base_seed());
    for (int i = 0; i < 300 && !HasFatalFailure(); ++i) {
        const pack_job job(random, GetParam().kernel.key);
        if (job.key.kind == access_kind::scatter)
            check_scatter(random, job, GetParam().kernel.run);
        else
            check_read(random, job, GetParam().kernel.run);
    }
}

INSTANTIATE_TEST_SUITE_P(every_kernel, pack_kernels,
                         ::testing::ValuesIn(cases_of(&kernel_table::packs)),
                         [](const auto& parameter) { return parameter.param.name(); });

} // namespace
} // namespace maskwise::test
