#include "instruction_counter.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace maskwise::guard {
namespace {

volatile long steps = 0;

void count_step(int) {
    steps = steps + 1;
}

} // namespace

void start_counting() {
    struct sigaction action {};
    action.sa_handler = count_step;
    if (sigaction(SIGTRAP, &action, nullptr) != 0) {
        std::perror("sigaction");
        std::exit(1);
    }
    steps = 0;
    // Sets the trap flag, which the system clears in the handler. The 128 bytes below rsp belong to
    // the compiler (red zone).
    asm volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
                 "leaq 128(%%rsp), %%rsp" ::
                     : "cc", "memory");
}

long stop_counting() {
    asm volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\t"
                 "leaq 128(%%rsp), %%rsp" ::
                     : "cc", "memory");
    return steps;
}

} // namespace maskwise::guard
