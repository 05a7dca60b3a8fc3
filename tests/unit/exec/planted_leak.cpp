// Leaks memory on purpose. Argument `caller`: on the calling thread. Argument `chunks`: in chunks
// that oneTBB calls. Exits with 0 unless LeakSanitizer reports the leak.

#include "exec/parallel.hpp"

#include <cstddef>
#include <string_view>

namespace {

std::byte* volatile lost = nullptr;

// Loses 100 blocks, because a register or a stack may still hold the address of one block.
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
