// In place of tbb_on_demand.cpp where plans run on the standard library's threads
// (MASKWISE_STD_THREADS), which are always there.

#include "exec/tbb_library.hpp"

namespace maskwise {

bool has_tbb(tbb_search) noexcept {
    return true;
}

} // namespace maskwise
