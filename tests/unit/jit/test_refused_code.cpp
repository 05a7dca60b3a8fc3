// A system that lets no written page be executed: this program's own mprotect plays it.

#include "base/error.hpp"
#include "jit/expression_code.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int mprotect(void* pages, std::size_t bytes, int rights) noexcept {
    if ((rights & PROT_EXEC) == 0)
        return static_cast<int>(syscall(SYS_mprotect, pages, bytes, rights));
    errno = EACCES;
    return -1;
}

namespace maskwise::jit {
namespace {

TEST(refused_code, is_known_before_anything_is_claimed) {
    EXPECT_FALSE(can_compile(isa::avx2));
    EXPECT_FALSE(can_compile(isa::avx512));
}

TEST(refused_code, is_an_error_with_the_systems_reason) {
    try {
        const std::byte code{};
        const code_memory pages({&code, 1}, "refused");
        FAIL();
    } catch (const error& failure) {
        EXPECT_NE(std::string(failure.what()).find("Permission denied"), std::string::npos)
            << failure.what();
    }
}

} // namespace
} // namespace maskwise::jit
