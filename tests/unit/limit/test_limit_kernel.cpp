// The benchmarks' limit is the fastest variant's time to move given numbers of bytes. A variant
// that moves fewer bytes than it counts would make the limit too low.

#include "limit/limit_kernel.hpp"
#include "support/case_generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace maskwise::bench {
namespace {

constexpr std::int64_t line = 64;
constexpr int threads = 3;
constexpr std::byte before{0x5a}, other_before{0xa5};

// Memory that begins at a cache line and is filled with one byte.
class lines {
public:
    lines(std::int64_t count, std::int64_t slack_bytes, std::byte value)
        : bytes_(count * line + slack_bytes),
          memory_(static_cast<std::size_t>(bytes_ + line), value) {}
    std::byte* data() {
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
        return memory_.data() + (line - address % line) % line;
    }
    std::int64_t bytes() const { return bytes_; }

private:
    std::int64_t bytes_;
    std::vector<std::byte> memory_;
};

struct amounts {
    std::int64_t read, written; // in lines
};

// Includes fewer lines than threads, prime counts, and more than two blocks of 64 KB.
constexpr amounts all_amounts[] = {{0, 1},    {4, 1},   {1, 5},      {37, 13},
                                   {200, 64}, {7, 999}, {300, 2111}, {1500, 1030}};

class limit_ways : public testing::TestWithParam<std::size_t> {
protected:
    const limit_variant& way() const { return limit_variants(threads)[GetParam()]; }
};

lines random_lines(std::int64_t count) {
    lines from(count, limit_slack_bytes, std::byte{0});
    test::generator random(1);
    std::generate_n(from.data(), from.bytes(), [&] { return static_cast<std::byte>(random()); });
    return from;
}

void run(const limit_variant& way, lines& from, lines& to, const amounts& a) {
    run_limit({from.data(), to.data(), a.read * line, a.written * line}, way, threads);
}

TEST_P(limit_ways, write_every_line_and_no_other) {
    for (const amounts& a : all_amounts) {
        lines from = random_lines(a.read);
        lines to(a.written, line, before), again(a.written, line, other_before);
        run(way(), from, to, a);
        run(way(), from, again, a);
        const std::int64_t end = a.written * line;
        EXPECT_EQ(std::memcmp(to.data(), again.data(), static_cast<std::size_t>(end)), 0)
            << a.read << " lines read, " << a.written << " written";
        EXPECT_EQ(std::count(to.data() + end, to.data() + end + line, before), line);
        EXPECT_NE(std::count(to.data(), to.data() + end, std::byte{0}), end)
            << "the result is all zeros";
    }
}

// Changing a line must change the result if the variant reads the line. The variant skips `a.read %
// places` lines.
TEST_P(limit_ways, read_every_line) {
    for (const amounts& a : all_amounts) {
        lines from = random_lines(a.read), expected(a.written, 0, before);
        lines to(a.written, 0, before);
        run(way(), from, expected, a);
        std::int64_t unread = 0;
        for (std::int64_t i = 0; i < a.read; ++i) {
            from.data()[i * line + i % line] ^= std::byte{1};
            run(way(), from, to, a);
            from.data()[i * line + i % line] ^= std::byte{1};
            const auto bytes = static_cast<std::size_t>(to.bytes());
            unread += std::memcmp(to.data(), expected.data(), bytes) == 0;
        }
        EXPECT_EQ(unread, a.read % way().places)
            << a.read << " lines read, " << a.written << " written";
    }
}

INSTANTIATE_TEST_SUITE_P(all, limit_ways,
                         testing::Range(std::size_t{0}, limit_variants(threads).size()));

} // namespace
} // namespace maskwise::bench
