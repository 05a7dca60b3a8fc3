#pragma once

namespace maskwise {

enum class tbb_search { loaded_only, open_too };

// Whether oneTBB's functions can be called; once true, always true. With `loaded_only`, opens no
// library. Thread-safe.
// tbb_linked.cpp is for programs and libraries that link oneTBB. The plugin must load into programs
// without oneTBB, so it has onednn/tbb_on_demand.cpp instead.
bool has_tbb(tbb_search where) noexcept;

} // namespace maskwise
