// Leaks memory on purpose: `caller` on the calling thread, `chunks` in chunks of a parallel run,
// below oneTBB's frames. Exits with 0 unless LeakSanitizer reports it.

#include "exec/parallel.hpp"

#include <cstddef>
#include <string_view>

namespace {

std::byte* volatile lost = nullptr;

// A single block could still be found in a register or on a thread's stack.
void lose_memory(const void*, std::int64_t) {
    for (int i = 0; i < 100; ++i) lost = new std::byte[64];
    lost = nullptr;
}

} // namespace

int main(int, char** argv) {
    if (std::string_view(argv[1]) == "caller")
        lose_memory(nullptr, 0);
    else
        maskwise::parallel_run(8, lose_memory, nullptr);
    return 0;
}
