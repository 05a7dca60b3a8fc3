#pragma once

#include <cstdint>

namespace maskwise::test {

// As long as one lives, this CPU has AMX's tiles of bf16: an illegal instruction that is one of
// theirs is decoded and computed, as Intel's manual says; any other, and any that the manual
// forbids, ends the process. x86 only, one at a time, for one thread.
class trapped_tiles {
public:
    trapped_tiles();
    trapped_tiles(const trapped_tiles&) = delete;
    trapped_tiles& operator=(const trapped_tiles&) = delete;
    ~trapped_tiles();

    std::int64_t products() const; // so far
    bool are_configured() const;
};

} // namespace maskwise::test
