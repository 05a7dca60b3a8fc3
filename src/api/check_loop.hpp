#pragma once

#include "maskwise/maskwise.hpp"

#include <string>

namespace maskwise {

// Throws invalid_argument for a loop that runs nothing.
inline void check_loop(const char* what, const parallel_loop& loop) {
    if (loop.threads >= 1 && loop.run) return;
    throw invalid_argument(std::string(what) + ": a loop of " + std::to_string(loop.threads) +
                           " threads" + (loop.run ? "" : " without a function"));
}

} // namespace maskwise
