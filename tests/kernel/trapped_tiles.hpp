#pragma once

#include <cstdint>

namespace maskwise::test {

// While an object exists, a handler of SIGILL emulates AMX's bf16 tile instructions as Intel's
// manual defines them. Other illegal instructions, and uses of tiles that the manual forbids, end
// the process. x86 only. Allows one object at a time, on one thread.
class trapped_tiles {
public:
    trapped_tiles();
    trapped_tiles(const trapped_tiles&) = delete;
    trapped_tiles& operator=(const trapped_tiles&) = delete;
    ~trapped_tiles();

    std::int64_t products() const; // since construction
    bool are_configured() const;
};

} // namespace maskwise::test
