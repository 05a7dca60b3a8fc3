#include "jit/code_memory.hpp"

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/first_use.hpp"
#include "base/verbose.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>

namespace maskwise::jit {
namespace {

std::size_t whole_pages(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

// Links are not followed and pipes not waited for: the folder of perf's maps is everybody's.
void write_file(const std::string& path, int flags, const void* data, std::size_t bytes) {
    constexpr int careful = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const int file = open(path.c_str(), flags | O_WRONLY | O_CREAT | careful, 0600);
    const bool written = file >= 0 && write(file, data, bytes) == static_cast<ssize_t>(bytes);
    if (file >= 0) close(file);
    if (!written && verbose_level() > 0) print_verbose("jit,cannot write " + path);
}

void publish(const std::byte* code, std::size_t bytes, const std::string& name) {
    if (const auto folder = read_environment("MASKWISE_JIT_DUMP"))
        write_file(std::string(*folder) + '/' + name + ".bin", O_TRUNC, code, bytes);
    if (read_environment_number("MASKWISE_JIT_PERF") <= 0) return;
    char line[128];
    const int length =
        std::snprintf(line, sizeof line, "%llx %zx %s\n",
                      reinterpret_cast<unsigned long long>(code), bytes, name.c_str());
    write_file("/tmp/perf-" + std::to_string(getpid()) + ".map", O_APPEND, line,
               static_cast<std::size_t>(length));
}

// Writable pages, or MAP_FAILED.
void* map_pages(std::size_t bytes) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
bool make_executable(void* pages, std::size_t bytes) {
    return mprotect(pages, bytes, PROT_READ | PROT_EXEC) == 0;
}

[[noreturn]] void fail(const char* what, std::size_t bytes) {
    if (errno == ENOMEM) throw std::bad_alloc();
    throw error(std::string(what) + " for " + std::to_string(bytes) +
                " bytes of machine code: " + std::generic_category().message(errno));
}

} // namespace

bool code_can_be_executed() {
    return at_first_use<[] {
        const std::size_t bytes = whole_pages(1);
        void* page = map_pages(bytes);
        if (page == MAP_FAILED) return false;
        const bool executable = make_executable(page, bytes);
        munmap(page, bytes);
        return executable;
    }>();
}

void code_memory::unmap::operator()(std::byte* pages) const {
    munmap(pages, bytes);
}

code_memory::code_memory(std::span<const std::byte> code, const std::string& name)
    : size_(code.size()), name_(name) {
    const std::size_t bytes = whole_pages(code.size());
    void* pages = map_pages(bytes);
    if (pages == MAP_FAILED) fail("no memory", bytes);
    pages_ = std::unique_ptr<std::byte, unmap>(static_cast<std::byte*>(pages), unmap{bytes});
    std::memcpy(pages, code.data(), code.size());
    if (!make_executable(pages, bytes)) fail("no executable memory", bytes);
    publish(pages_.get(), size_, name_);
}

} // namespace maskwise::jit
