// Scratch memory: where values may begin in it, and the one that is kept.

#include "base/scratch.hpp"

#include <gtest/gtest.h>

#include <vector>

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

TEST(spare, keeps_the_last_that_was_given_back) {
    int alive = 0;
    {
        spare<counted> kept;
        EXPECT_EQ(kept.take(), nullptr);
        auto first = std::make_unique<counted>(alive), second = std::make_unique<counted>(alive);
        const auto* const last = second.get();
        kept.give_back(std::move(first));
        kept.give_back(std::move(second));
        EXPECT_EQ(alive, 1);
        auto taken = kept.take();
        EXPECT_EQ(taken.get(), last);
        EXPECT_EQ(kept.take(), nullptr);
        kept.give_back(std::move(taken));
    }
    EXPECT_EQ(alive, 0);
}

TEST(spare, keeps_arrays) {
    spare<std::byte[]> kept;
    kept.give_back(std::make_unique<std::byte[]>(5));
    EXPECT_NE(kept.take(), nullptr);
}

} // namespace
} // namespace maskwise
