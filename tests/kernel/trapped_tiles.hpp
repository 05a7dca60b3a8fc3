#pragma once

#include <cstdint>

namespace maskwise::test {

// While an object lives, this CPU has AMX's bf16 tiles: the handler of illegal instructions decodes
// and computes AMX instructions by Intel's manual. Any other illegal instruction, and any that the
// manual forbids, ends the process. x86 only; one object at a time, for one thread.
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
