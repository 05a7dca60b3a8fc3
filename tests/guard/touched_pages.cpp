#include "touched_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <new>

namespace maskwise::guard {
namespace {

// The signal handler reads the slots, so access must not lock or allocate. A watch must not begin
// or end while another thread touches the buffer.
struct slot {
    std::atomic<std::byte*> begin{nullptr};
    std::size_t bytes = 0;
    std::atomic<bool>* touched = nullptr;
};
std::array<slot, 8> slots;
struct sigaction previous {};

// A function, because static initializers of other files need the page size.
std::size_t page() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

void on_fault(int number, siginfo_t* info, void* context) {
    auto* const address = static_cast<std::byte*>(info->si_addr);
    for (const slot& s : slots) {
        std::byte* const begin = s.begin.load();
        if (!begin || address < begin || address >= begin + s.bytes) continue;
        const std::size_t index = static_cast<std::size_t>(address - begin) / page();
        s.touched[index].store(true);
        mprotect(begin + index * page(), page(), PROT_READ | PROT_WRITE);
        return;
    }
    // No watched page has this address. The instruction runs again, and the previous handler gets
    // the fault.
    sigaction(number, &previous, nullptr);
    (void)context;
}

void install_handler() {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &previous);
}

} // namespace

std::size_t watched_buffer::page_bytes() {
    return page();
}

watched_buffer::watched_buffer(std::size_t bytes)
    : pages_((bytes + page() - 1) / page()),
      touched_(std::make_unique<std::atomic<bool>[]>(pages_)) {
    static const bool installed = (install_handler(), true);
    (void)installed;
    void* memory =
        mmap(nullptr, pages_ * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(memory);
}

watched_buffer::~watched_buffer() {
    end();
    munmap(data_, pages_ * page());
}

void watched_buffer::begin(watch accesses) {
    for (std::size_t i = 0; i < pages_; ++i) touched_[i] = false;
    const auto free = std::find_if(slots.begin(), slots.end(),
                                   [](const slot& s) { return s.begin.load() == nullptr; });
    if (free == slots.end()) throw std::bad_alloc();
    free->bytes = pages_ * page();
    free->touched = touched_.get();
    free->begin = data_;
    mprotect(data_, free->bytes, accesses == watch::writes ? PROT_READ : PROT_NONE);
}

std::vector<bool> watched_buffer::end() {
    for (slot& s : slots)
        if (s.begin.load() == data_) s.begin = nullptr;
    mprotect(data_, pages_ * page(), PROT_READ | PROT_WRITE);
    return std::vector<bool>(touched_.get(), touched_.get() + pages_);
}

} // namespace maskwise::guard
