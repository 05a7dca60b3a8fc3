// The memory is read-only during the call, so each store faults. The fault handler records the line
// and sets the trap flag. After the store, the processor traps, and the trap handler protects the
// memory again.

#include "written_lines.hpp"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <vector>

namespace maskwise::test {
namespace {

constexpr std::size_t line_bytes = 64;
constexpr greg_t trap_flag = 0x100;

// These variables are not atomic, because the handlers run on the thread that sets them.
std::byte* watched = nullptr;
std::size_t watched_bytes = 0, page_bytes = 0;
std::vector<char> is_written; // by line
struct sigaction fault_before {};
struct sigaction trap_before {};

greg_t& flags_of(void* context) {
    return static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
}

void on_fault(int number, siginfo_t* info, void* context) {
    auto* const address = static_cast<std::byte*>(info->si_addr);
    if (address < watched || address >= watched + watched_bytes) {
        // The address is not watched. The instruction runs again, and the previous handler gets
        // the fault.
        sigaction(number, &fault_before, nullptr);
        return;
    }
    const auto offset = static_cast<std::size_t>(address - watched);
    is_written[offset / line_bytes] = 1;
    mprotect(watched + offset / page_bytes * page_bytes, page_bytes, PROT_READ | PROT_WRITE);
    flags_of(context) |= trap_flag;
}

void on_trap(int, siginfo_t*, void* context) {
    mprotect(watched, watched_bytes, PROT_READ);
    flags_of(context) &= ~trap_flag;
}

void handle(int number, void (*handler)(int, siginfo_t*, void*), struct sigaction& before) {
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(number, &action, &before);
}

void protect(int protection) {
    if (mprotect(watched, watched_bytes, protection) != 0)
        throw std::system_error(errno, std::generic_category(),
                                "protecting " + std::to_string(watched_bytes) + " bytes");
}

} // namespace

std::int64_t written_bytes(std::byte* data, std::int64_t bytes, const std::function<void()>& call) {
    page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    watched = data;
    watched_bytes = (static_cast<std::size_t>(bytes) + page_bytes - 1) / page_bytes * page_bytes;
    is_written.assign(watched_bytes / line_bytes, 0);
    handle(SIGSEGV, on_fault, fault_before);
    handle(SIGTRAP, on_trap, trap_before);
    protect(PROT_READ);
    call();
    protect(PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &fault_before, nullptr);
    sigaction(SIGTRAP, &trap_before, nullptr);
    return static_cast<std::int64_t>(line_bytes) *
           std::count(is_written.begin(), is_written.end(), 1);
}

} // namespace maskwise::test
