#pragma once

namespace maskwise {

enum class tbb_search { loaded_only, open_too };

// Whether oneTBB's functions can be called; from the first true on, always. tbb_linked.cpp answers
// for programs and libraries that link oneTBB. The plugin, which must load into programs without
// it, answers by onednn/tbb_on_demand.cpp and opens no library where only loaded ones are asked
// for. Any thread; never throws.
bool has_tbb(tbb_search where) noexcept;

} // namespace maskwise
