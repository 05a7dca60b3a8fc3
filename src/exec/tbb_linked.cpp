#include "exec/tbb_library.hpp"

namespace maskwise {

bool has_tbb(tbb_search) noexcept {
    return true;
}

} // namespace maskwise
