#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace maskwise::bench {

// Memory from the operating system, at the start of a page. It grows and is kept from case to case,
// so that a case's first call does not pay for its pages.
class arena {
public:
    arena() = default;
    ~arena();
    arena(const arena&) = delete;
    arena& operator=(const arena&) = delete;

    // At least `bytes`, all touched. Throws std::system_error where there is no memory.
    std::byte* take(std::int64_t bytes);

private:
    std::byte* data_ = nullptr;
    std::int64_t size_ = 0;
};

// A file of a case's folder, mapped and shared between the processes.
class shared_file {
public:
    // Opens or creates the file with at least `bytes`; throws std::system_error naming the path.
    shared_file(const std::string& path, std::int64_t bytes, bool writable);
    ~shared_file();
    shared_file(const shared_file&) = delete;
    shared_file& operator=(const shared_file&) = delete;

    std::byte* data() const { return data_; }

private:
    std::byte* data_ = nullptr;
    std::int64_t size_ = 0;
};

} // namespace maskwise::bench
