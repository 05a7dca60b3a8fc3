#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace maskwise::guard {

// A buffer that records which of its pages are read or written. The pages are protected. The first
// fault in a page records and unprotects the page.
class watched_buffer {
public:
    enum class watch { reads_and_writes, writes };

    explicit watched_buffer(std::size_t bytes);
    ~watched_buffer();
    watched_buffer(const watched_buffer&) = delete;
    watched_buffer& operator=(const watched_buffer&) = delete;

    std::byte* data() const { return data_; }
    void begin(watch accesses);
    // Ends the watch. Returns, for each page, whether it was touched since begin.
    std::vector<bool> end();

    static std::size_t page_bytes();

private:
    std::byte* data_ = nullptr;
    std::size_t pages_ = 0;
    std::unique_ptr<std::atomic<bool>[]> touched_; // by page
};

} // namespace maskwise::guard
