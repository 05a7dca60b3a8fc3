// Tests the alignment of scratch memory, and how many objects a pool caches.

#include "base/scratch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

namespace maskwise {
namespace {

TEST(scratch, begins_at_multiples_of_its_alignment) {
    EXPECT_EQ(padded_bytes(0), 0U);
    EXPECT_EQ(padded_bytes(1), scratch_alignment);
    EXPECT_EQ(padded_bytes(scratch_alignment), scratch_alignment);
    alignas(64) std::byte memory[3 * scratch_alignment];
    EXPECT_EQ(first_aligned(memory), memory);
    EXPECT_EQ(first_aligned(memory + 1), memory + scratch_alignment);
    EXPECT_EQ(first_aligned(memory + 2 * scratch_alignment - 1), memory + 2 * scratch_alignment);
}

struct counted {
    explicit counted(int& alive_now) : alive(alive_now) { ++alive; }
    ~counted() { --alive; }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    int& alive;
};

TEST(scratch_memory, grows_and_never_shrinks) {
    scratch_memory memory;
    std::byte* const small = memory.reserve(2 * scratch_alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small) % scratch_alignment, 0U);
    std::byte* const large = memory.reserve(64 * scratch_alignment);
    std::fill_n(large, 63 * scratch_alignment, std::byte{1});
    EXPECT_EQ(memory.reserve(scratch_alignment), large);
}

TEST(scratch_pool, caches_the_object_given_back_last) {
    int alive = 0;
    {
        scratch_pool<counted> pool;
        EXPECT_EQ(pool.take(), nullptr);
        auto first = std::make_unique<counted>(alive), second = std::make_unique<counted>(alive);
        const auto* const last = second.get();
        pool.give_back(std::move(first));
        pool.give_back(std::move(second));
        EXPECT_EQ(alive, 1);
        auto cached = pool.take();
        EXPECT_EQ(cached.get(), last);
        EXPECT_EQ(pool.take(), nullptr);
        pool.give_back(std::move(cached));
    }
    EXPECT_EQ(alive, 0);
}

TEST(scratch_pool, caches_up_to_its_capacity) {
    int alive = 0;
    {
        scratch_pool<counted> pool(2);
        for (int i = 0; i < 3; ++i) pool.give_back(std::make_unique<counted>(alive));
        EXPECT_EQ(alive, 2);
        const auto first = pool.take(), second = pool.take();
        EXPECT_NE(first, nullptr);
        EXPECT_NE(second, nullptr);
        EXPECT_EQ(pool.take(), nullptr);
    }
    EXPECT_EQ(alive, 0);
}

} // namespace
} // namespace maskwise
