#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace maskwise::jit {

// Pages of machine code: written while they cannot be executed, then executable and never writable
// again. Freed with the object.
//
// MASKWISE_JIT_DUMP=<folder> writes the code as <folder>/<name>.bin
// (objdump -D -b binary -m i386:x86-64), MASKWISE_JIT_PERF=1 names it in /tmp/perf-<pid>.map, where
// `perf report` looks. Neither is read in set-user-id programs; where a file cannot be written a
// verbose line says so.
class code_memory {
public:
    // Throws std::bad_alloc where the system has no pages and error where it refuses to make them
    // executable.
    code_memory(std::span<const std::byte> code, const std::string& name);

    const std::byte* begin() const { return pages_.get(); }
    std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(pages_.get()); }
    std::size_t size() const { return size_; }
    const std::string& name() const { return name_; }

private:
    struct unmap {
        std::size_t bytes;
        void operator()(std::byte* pages) const;
    };

    std::unique_ptr<std::byte, unmap> pages_{nullptr, unmap{0}};
    std::size_t size_ = 0;
    std::string name_;
};

// Whether the system lets pages that were written be executed; asked once. Hardened ones do not.
bool code_can_be_executed();

} // namespace maskwise::jit
